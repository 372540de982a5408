#include "launch/logs/growing_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include <fmt/format.h>

namespace fleetrun::launch {
namespace {

constexpr std::size_t kRemembered =
    256;  // bytes of the end, and of the start: lines of a log differ by their time or step

}  // namespace

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

void GrowingFile::go_to(off_t place) {
  place_ = place;
  start_ = bytes_at(0, static_cast<std::size_t>(std::min<off_t>(place, kRemembered)));
  before_.clear();
}

std::string GrowingFile::bytes_at(off_t place, std::size_t count) const {
  std::string bytes(count, '\0');
  const ssize_t found = fd_ ? ::pread(fd_.get(), bytes.data(), count, place) : 0;
  bytes.resize(found > 0 ? static_cast<std::size_t>(found) : 0);
  return bytes;
}

// A descriptor that does not append, such as that of `tee /dev/stderr`, changes bytes in the middle: then the start is as it was.
bool GrowingFile::has_what_was_read() const {
  const off_t end = size();
  if (end <= place_ || before_.empty()) return end >= place_;
  return bytes_at(place_ - std::ssize(before_), before_.size()) == before_ ||
         bytes_at(0, start_.size()) == start_;
}

bool GrowingFile::begins_anew() {
  if (!fd_ || has_what_was_read()) return false;
  go_to(0);
  return true;
}

std::string GrowingFile::read(std::size_t most) {
  std::string text = bytes_at(place_, most);
  if (start_.size() < kRemembered && place_ == std::ssize(start_))
    start_.append(text, 0, kRemembered - start_.size());
  place_ += static_cast<off_t>(text.size());
  before_.append(text, text.size() - std::min(text.size(), kRemembered));
  if (before_.size() > kRemembered) before_.erase(0, before_.size() - kRemembered);
  return text;
}

std::string GrowingFile::read_end(std::size_t most) {
  const off_t end = size();
  if (end <= place_) return "";
  if (const off_t start = end - static_cast<off_t>(most); start > place_) go_to(start);
  return read(static_cast<std::size_t>(end - place_));
}

}  // namespace fleetrun::launch
