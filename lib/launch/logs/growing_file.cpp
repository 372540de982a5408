#include "launch/logs/growing_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include <fmt/format.h>

namespace fleetrun::launch {

LogFile file_behind(const UniqueFd& fd, const LogFile& named) {
  const std::string path = fmt::format("/proc/self/fd/{}", fd.get());
  return ::access(path.c_str(), R_OK) == 0 ? LogFile(AT_FDCWD, path, named.path) : named;
}

GrowingFile::GrowingFile(const LogFile& file)
    : fd_(::openat(file.folder, file.name.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {}

off_t GrowingFile::size() const {
  struct stat facts {};
  return fd_ && ::fstat(fd_.get(), &facts) == 0 ? facts.st_size : 0;
}

ino_t GrowingFile::inode() const {
  struct stat facts {};
  return fd_ && ::fstat(fd_.get(), &facts) == 0 ? facts.st_ino : 0;
}

bool GrowingFile::begins_anew() {
  if (!fd_ || size() >= place_) return false;
  place_ = 0;
  return true;
}

std::string GrowingFile::read(std::size_t most) {
  std::string text(most, '\0');
  const ssize_t count = fd_ ? ::pread(fd_.get(), text.data(), text.size(), place_) : 0;
  text.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
  place_ += static_cast<off_t>(text.size());
  return text;
}

std::string GrowingFile::read_end(std::size_t most) {
  const off_t end = size();
  if (end <= place_) return "";
  place_ = std::max(place_, end - static_cast<off_t>(most));
  return read(static_cast<std::size_t>(end - place_));
}

}  // namespace fleetrun::launch
