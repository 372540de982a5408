#include "runtime/data/formats/read_bytes.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include <fmt/format.h>

#include "base/error/error.h"

namespace fleetrun::runtime {

OpenedFile open_data_file(const std::string& path) {
  // O_NONBLOCK: a pipe without a writer must not hold us up before fstat tells that it is one.
  OpenedFile file{UniqueFd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)), 0};
  if (!file.fd) throw file_error(errno, "opening", path);
  struct stat facts {};
  if (::fstat(file.fd.get(), &facts) != 0) throw file_error(errno, "reading", path);
  if (!S_ISREG(facts.st_mode))
    throw Error(ErrorKind::data,
                fmt::format("{} is {}, wanted a regular file", path,
                            S_ISDIR(facts.st_mode) ? "a folder" : "a device, pipe or socket"));
  file.bytes = static_cast<std::size_t>(facts.st_size);
  return file;
}

std::size_t read_at(const UniqueFd& fd, const std::string& path, std::size_t offset, std::size_t count,
                    std::uint8_t* bytes) {
  std::size_t filled = 0;
  while (filled < count) {
    const ssize_t got =
        ::pread(fd.get(), bytes + filled, count - filled, static_cast<off_t>(offset + filled));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw file_error(errno, "reading", path);
    if (got == 0) break;
    filled += static_cast<std::size_t>(got);
  }
  return filled;
}

void read_start(const std::string& path, std::size_t limit, std::vector<std::uint8_t>& bytes) {
  const OpenedFile file = open_data_file(path);
  bytes.resize(std::min(file.bytes, limit));
  bytes.resize(read_at(file.fd, path, 0, bytes.size(), bytes.data()));
}

void read_whole(const std::string& path, std::size_t limit, std::vector<std::uint8_t>& bytes) {
  const OpenedFile file = open_data_file(path);
  if (file.bytes > limit)
    throw Error(ErrorKind::data, fmt::format("{} has {} bytes, the limit is {}", path, file.bytes, limit));
  bytes.resize(file.bytes);
  bytes.resize(read_at(file.fd, path, 0, bytes.size(), bytes.data()));
}

}  // namespace fleetrun::runtime
