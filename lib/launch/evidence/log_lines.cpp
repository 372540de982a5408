#include "launch/evidence/log_lines.h"

#include <algorithm>

#include "base/text/printable.h"
#include "launch/logs/last_lines.h"
#include "launch/logs/log_text.h"

namespace fleetrun::launch {
namespace {

constexpr std::size_t kLongestLine = 1000;  // bytes: a message longer than that is cut
constexpr std::string_view kTraceback = "Traceback (most recent call last)";
constexpr std::string_view kBarSign = "%|";

// A progress bar that an exception has interrupted has no end of line: " 39%|##   | 39/100 [00:01<00:20]Traceback (most ...".
std::size_t end_of_bar(std::string_view line) {
  const std::size_t start = line.find(kTraceback);
  return start != std::string_view::npos && line.substr(0, start).find(kBarSign) != std::string_view::npos
             ? start
             : 0;
}

bool has_shape(std::string_view line, std::string_view prefix) {
  return line.size() >= prefix.size() &&
         std::equal(prefix.begin(), prefix.end(), line.begin(),
                    [](char a, char b) { return a == b || (is_digit(a) && is_digit(b)); });
}

// A bar that is closed is drawn once or twice more.
bool is_at_work(std::string_view raw, std::string_view line) {
  constexpr std::ptrdiff_t kDrawnWhenClosed = 2;
  return line.find(kBarSign) != std::string_view::npos &&
         std::count(raw.begin(), raw.end(), '\r') > kDrawnWhenClosed;
}

void add_line(const std::string& line, LogLines& log) {
  log.starts.push_back(log.text.size());
  log.lines.push_back(shorten(printable(line), kLongestLine));
  log.text.append(log.lines.back()).append("\n");
  log.advances.push_back(false);
}

}  // namespace

bool is_digit(char letter) { return letter >= '0' && letter <= '9'; }

std::size_t LogLines::line_at(std::size_t place) const {
  return static_cast<std::size_t>(std::upper_bound(starts.begin(), starts.end(), place) - starts.begin()) - 1;
}

LogLines read_log_lines(std::string_view log_end) {
  LogLines log;
  while (!log_end.empty()) {
    const std::size_t end = std::min(log_end.find('\n'), log_end.size());
    const std::string line = clean_line(log_end.substr(0, end));
    const std::size_t bar = end_of_bar(line);
    add_line(bar == 0 ? line : line.substr(0, bar), log);
    log.advances.back() = is_at_work(log_end.substr(0, end), line);
    if (bar != 0) add_line(line.substr(bar), log);
    log_end.remove_prefix(std::min(end + 1, log_end.size()));
  }
  return log;
}

std::string_view without_prefix(std::string_view line, std::string_view prefix) {
  if (has_shape(line, prefix)) return line.substr(prefix.size());
  const auto letters = prefix.find_last_not_of(' ');
  const bool is_bare = letters != std::string_view::npos && line.size() == letters + 1 &&
                       has_shape(line, prefix.substr(0, letters + 1));  // of an empty line
  return is_bare ? "" : line;
}

}  // namespace fleetrun::launch
