#include "launch/last_lines.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "base/printable.h"
#include "base/unique_fd.h"

namespace fleetrun::launch {
namespace {

constexpr off_t kTailBytes = 16 * 1024;  // enough for the last lines of any readable log

}  // namespace

std::vector<std::string> read_last_lines(const std::string& path, std::size_t count) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat facts {};
  if (!fd || ::fstat(fd.get(), &facts) != 0) return {};
  const off_t start = std::max<off_t>(0, facts.st_size - kTailBytes);
  std::string text(static_cast<std::size_t>(facts.st_size - start), '\0');
  const ssize_t got = ::pread(fd.get(), text.data(), text.size(), start);
  text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  std::vector<std::string> lines;
  std::size_t end = text.size();
  if (end > 0 && text[end - 1] == '\n') --end;
  while (end > 0 && lines.size() < count) {
    const std::size_t before = text.rfind('\n', end - 1);
    const std::size_t first = before == std::string::npos ? 0 : before + 1;
    lines.insert(lines.begin(), printable(text.substr(first, end - first)));
    end = before == std::string::npos ? 0 : before;
  }
  return lines;
}

}  // namespace fleetrun::launch
