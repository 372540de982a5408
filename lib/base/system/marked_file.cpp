#include "base/system/marked_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/error/error.h"
#include "base/system/unique_fd.h"

namespace fleetrun {

void require_ours(const std::string& path, const Mark& mark, const std::string& hint) {
  const auto is_marked = [&](int fd) {
    std::string start(mark.text.size(), '\0');
    return ::pread(fd, start.data(), start.size(), mark.place) == static_cast<ssize_t>(start.size()) &&
           start == mark.text;
  };
  require_ours(path, is_marked, hint);
}

void require_ours(const std::string& path, const std::function<bool(int fd)>& is_ours,
                  const std::string& hint) {
  struct stat facts {};
  if (::lstat(path.c_str(), &facts) != 0) return;  // nothing, or what the attempt to write will tell
  const UniqueFd fd(
      S_ISREG(facts.st_mode) ? ::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC) : -1);
  if ((S_ISREG(facts.st_mode) && facts.st_size == 0) || (fd && is_ours(fd.get()))) return;
  if (S_ISREG(facts.st_mode) && !fd)
    throw Error(
        ErrorKind::create,
        fmt::format("{} is in the way: a file that may not be read, so that nobody knows who wrote it", path),
        hint);
  throw Error(ErrorKind::create,
              fmt::format("{} is in the way: {} that fleetrun did not write", path,
                          S_ISLNK(facts.st_mode)   ? "a link"
                          : S_ISDIR(facts.st_mode) ? "a folder"
                          : S_ISREG(facts.st_mode) ? "a file"
                                                   : "a device, pipe or socket"),
              hint);
}

}  // namespace fleetrun
