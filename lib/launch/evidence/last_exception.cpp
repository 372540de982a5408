#include "launch/evidence/last_exception.h"

#include <algorithm>

#include "launch/evidence/aftermath.h"
#include "launch/evidence/echoes.h"
#include "launch/evidence/traceback.h"

namespace fleetrun::launch {

LastException::LastException(std::string_view log_end, std::string_view script)
    : log(read_log_lines(log_end)), tracebacks(find_tracebacks(log)) {
  std::vector<Finding> weakened = tracebacks;
  weaken_echoes(weakened, log.lines, {.script = script, .lines_at_death = log.lines.size(), .exit_code = 1});
  for (std::size_t i = tracebacks.size(); i > 0 && traceback == nullptr; --i) {
    const Finding& one = tracebacks[i - 1];
    const bool is_echo = one.weight != weakened[i - 1].weight;
    if (one.endings != 0 && !one.in_thread && !is_echo) traceback = &one;
  }
}

std::size_t LastException::end_of_message() const {
  if (traceback == nullptr) return log.lines.size();
  const auto next = static_cast<std::size_t>(traceback - tracebacks.data()) + 1;
  return next < tracebacks.size() ? tracebacks[next].first : log.lines.size();
}

bool LastException::line_before_has(bool (*has)(std::string_view line), std::size_t most) const {
  if (traceback == nullptr) return false;
  const Finding* const before = traceback == tracebacks.data() ? nullptr : traceback - 1;
  const bool is_aside = before != nullptr && (before->in_thread || before->endings == 0);
  for (std::size_t line = traceback->first; line > (is_aside ? before->end : 0) && most > 0; --line) {
    if (has(log.lines[line - 1])) return true;
    if (!is_chatter(log.lines[line - 1])) --most;
  }
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
