#include "base/system/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>
#include <chrono>
#include <thread>

#include <fmt/format.h>

#include "base/error/error.h"

namespace fleetrun {
namespace {

using namespace std::chrono_literals;

constexpr auto kLockDeadline =
    10s;  // a lock lasts for one read and one write; a longer one means a stopped process
constexpr auto kLockPause = 10ms;

// Whether the lock is ours. False: the file system has none for this file.
bool take_lock(const UniqueFd& fd, const std::string& path) {
  const auto deadline = std::chrono::steady_clock::now() + kLockDeadline;
  while (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) return false;
    if (std::chrono::steady_clock::now() >= deadline)
      throw Error(ErrorKind::temporary,
                  fmt::format("{} is locked by another process for {} s", path, kLockDeadline.count()));
    std::this_thread::sleep_for(kLockPause);
  }
  return true;
}

}  // namespace

UniqueFd lock_file(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644));
  if (!fd) throw Error(ErrorKind::create, fmt::format("creating {}: {}", path, describe_errno(errno)));
  if (!take_lock(fd, path))
    throw Error(ErrorKind::io, fmt::format("locking {}: {}", path, describe_errno(errno)));
  return fd;
}

UniqueFd lock_folder(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) throw Error(ErrorKind::create, fmt::format("opening {}: {}", path, describe_errno(errno)));
  take_lock(fd, path);
  return fd;
}

}  // namespace fleetrun
