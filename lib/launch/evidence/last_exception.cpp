#include "launch/evidence/last_exception.h"

#include <algorithm>

#include "launch/evidence/aftermath.h"
#include "launch/evidence/echoes.h"
#include "launch/evidence/traceback.h"

namespace fleetrun::launch {

LastException::LastException(std::string_view log_end, std::string_view script)
    : log(read_log_lines(log_end)), tracebacks(find_tracebacks(log)) {
  weaken_echoes(tracebacks, log.lines, {.script = script, .lines_at_death = log.lines.size()});
  const auto last = std::find_if(tracebacks.rbegin(), tracebacks.rend(), [](const Finding& one) {
    return one.endings != 0 && !one.in_thread && one.weight != Weight::echo;
  });
  if (last != tracebacks.rend()) traceback = &*last;
}

std::size_t LastException::end_of_message() const {
  const auto next = static_cast<std::size_t>(traceback - tracebacks.data()) + 1;
  return next < tracebacks.size() ? tracebacks[next].first : log.lines.size();
}

bool LastException::line_before_has(bool (*has)(std::string_view line), std::size_t most) const {
  const std::size_t before = traceback == tracebacks.data() ? 0 : (traceback - 1)->end;  // the one before it
  for (std::size_t line = traceback->first; line > before && most > 0; --line, --most)
    if (has(log.lines[line - 1])) return true;
  return false;
}

bool may_be_caught(std::string_view log_end, std::string_view script) {
  const LastException last(log_end, script);
  if (last.traceback == nullptr) return !last.tracebacks.empty();
  if (!last.traceback->from_top) return true;
  std::size_t line = last.traceback->first;
  while (line > 0 && last.log.lines[line - 1].empty()) --line;
  return line > 0 && is_complaint(last.log.lines[line - 1]);
}

}  // namespace fleetrun::launch
