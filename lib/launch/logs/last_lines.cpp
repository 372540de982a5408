#include "launch/logs/last_lines.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/system/crash_trace.h"
#include "base/text/printable.h"
#include "base/text/utf8.h"
#include "launch/logs/escapes.h"
#include "launch/logs/log_text.h"

namespace fleetrun::launch {
namespace {

constexpr std::size_t kTailBytes = 16 * 1024;   // enough for the last lines of any readable log
constexpr std::size_t kLongestLastLine = 1000;  // bytes; about ten rows of a terminal

}  // namespace

std::string shorten(std::string text, std::size_t most) {
  constexpr std::string_view kCut = "...";
  if (text.size() <= most) return text;
  text.resize(whole_utf8_characters(text, most - kCut.size()));
  return text.append(kCut);
}

std::string read_log_end(const LogFile& file, std::size_t most, std::optional<off_t> size) {
  GrowingFile log(file);
  const off_t end = std::min(size.value_or(log.size()), log.size());
  log.go_to(std::max<off_t>(end - static_cast<off_t>(most), 0));
  return log.read(static_cast<std::size_t>(end - log.place()));
}

int problem_of_reading(const LogFile& file) {
  const UniqueFd fd(::openat(file.folder, file.name.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  char first = 0;
  return fd && ::pread(fd.get(), &first, 1, 0) >= 0 ? 0 : errno;
}

std::vector<std::string> last_lines(std::string_view text, std::size_t count) {
  std::vector<std::string> lines;
  if (text.ends_with('\n')) text.remove_suffix(1);
  bool was_redrawn = false;
  while (!text.empty() && lines.size() < count) {
    const std::size_t start = text.rfind('\n') + 1;  // 0 in the first line
    const std::string_view line = text.substr(start);
    text = text.substr(0, start == 0 ? 0 : start - 1);
    const std::size_t last = line.rfind(kEscape);
    const bool is_redrawn = last != std::string_view::npos && rows_up(line.substr(last)) > 0;
    if (is_redrawn && std::exchange(was_redrawn, true))
      continue;  // an old state of the row that is there already
    lines.push_back(shorten(printable(clean_line(line)), kLongestLastLine));
    was_redrawn = is_redrawn;
  }
  std::reverse(lines.begin(), lines.end());
  return lines;
}

std::vector<std::string> last_lines_of_failure(std::string_view text, std::size_t count) {
  const std::size_t crash = text.rfind(kCrashHeadline);
  const bool ends_with_frame = text.ends_with("]\n");
  if (crash == std::string_view::npos || !ends_with_frame) return last_lines(text, count);
  const std::size_t above = text.rfind('\n', crash);  // the end of the line above the headline
  const std::size_t first =
      above == std::string_view::npos || above == 0 ? 0 : text.rfind('\n', above - 1) + 1;
  const std::string_view trace = text.substr(first);
  if (static_cast<std::size_t>(std::count(trace.begin(), trace.end(), '\n')) <= count)
    return last_lines(text, count);
  std::size_t end = 0;
  for (std::size_t line = 0; line < count; ++line) end = trace.find('\n', end) + 1;
  return last_lines(trace.substr(0, end), count);
}

std::vector<std::string> read_last_lines(const LogFile& file, std::size_t count) {
  return last_lines(read_log_end(file, kTailBytes), count);
}

}  // namespace fleetrun::launch
