#include "launch/logs/folder_lock.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <ctime>
#include <string_view>

#include <fmt/format.h>

#include "base/error/error.h"
#include "base/text/printable.h"
#include "launch/logs/control_address.h"
#include "launch/logs/own_files.h"
#include "launch/process/proc_files.h"

namespace fleetrun::launch {
namespace {

constexpr const char* kLockName = ".lock";
constexpr std::string_view kOurText = "fleetrun, pid ";
constexpr std::string_view kBeforeHost = " on ";
// Bytes. Ours has about 40 and the name of the host, which has at most 64.
constexpr std::size_t kMostText = 160;
constexpr off_t kLockedByte =
    1 << 30;  // far after the text: on some file systems nobody can read a locked byte

// Of the open file (not of the process), so that it goes when its last descriptor is closed.
struct flock locked_byte(short type) {
  struct flock byte {};
  byte.l_type = type;
  byte.l_whence = SEEK_SET;
  byte.l_start = kLockedByte;
  byte.l_len = 1;
  return byte;
}

std::string read_text(int fd) {
  char text[kMostText] = "";
  const ssize_t count = ::pread(fd, text, sizeof text, 0);
  return count > 0 ? std::string(text, static_cast<std::size_t>(count)) : "";
}

std::string own_host() {
  struct utsname names {};
  return ::uname(&names) == 0 ? names.nodename : "";
}

std::string our_text(pid_t pid) {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  ::localtime_r(&now, &local);
  char since[16] = "";
  std::strftime(since, sizeof since, "%H:%M:%S", &local);
  return fmt::format("{}{}, since {}{}{}", kOurText, pid, since, kBeforeHost, own_host());
}

std::string host_in(const std::string& holder) {
  const std::size_t at = holder.find(kBeforeHost);
  return at == std::string::npos ? "" : holder.substr(at + kBeforeHost.size());
}

bool is_elsewhere(const std::string& holder) {
  const std::string host = host_in(holder);
  return !host.empty() && host != own_host();
}

// A file of ours is there, or nothing: what a link leads to, and what has another name elsewhere, is not written to.
bool is_a_lock(int fd) {
  struct stat facts {};
  if (::fstat(fd, &facts) != 0 || !S_ISREG(facts.st_mode) || facts.st_nlink != 1) return false;
  return facts.st_size == 0 ||
         (facts.st_size <= static_cast<off_t>(kMostText) && read_text(fd).starts_with(kOurText));
}

bool has_no_locks(int problem) {
  return problem == ENOSYS || problem == ENOLCK || problem == EOPNOTSUPP || problem == EINVAL;
}

UniqueFd open_to_read(int folder) {
  return UniqueFd(::openat(folder, kLockName, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
}

// "" where it cannot be read.
std::string read_holder(int folder) {
  const UniqueFd lock = open_to_read(folder);
  const std::string text = lock ? read_text(lock.get()) : "";
  return text.starts_with(kOurText) ? text : "";
}

// The lock of a user who does not let us read it is in the kernel's list all the same.
bool is_listed(const FileFacts& lock) {
  const std::string entry = fmt::format(":{} {} {}\n", lock.inode, kLockedByte, kLockedByte);
  return read_kernel_file("/proc/locks").find(entry) != std::string::npos;
}

bool is_held(int folder, const std::string& path, const FileFacts& facts) {
  const UniqueFd lock = open_to_read(folder);
  if (!lock) return is_listed(facts);
  struct flock byte = locked_byte(F_WRLCK);
  if (::fcntl(lock.get(), F_OFD_GETLK, &byte) != 0) return has_no_locks(errno) && is_answered(path);
  return byte.l_type != F_UNLCK;
}

Error in_use(int folder, const std::string& path) {
  const auto facts = facts_of(folder, kLockName);
  std::string holder = read_holder(folder);
  const std::string hint =
      is_elsewhere(holder)
          ? "hosts that share this folder need log folders of their own, such as --log_dir=\"log.$(hostname)\""
          : "--log_dir chooses another folder for this run";
  if (facts && facts->owner != ::geteuid())
    holder =
        fmt::format("a run of {}{}", name_of_user(facts->owner), holder.empty() ? "" : " (" + holder + ")");
  return Error(ErrorKind::create,
               fmt::format("{}/ is in use by {}", path,
                           holder.empty() ? "a process of unknown number" : printable(holder)),
               hint);
}

UniqueFd open_lock(int folder, const std::string& path) {
  constexpr int kFlags = O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
  UniqueFd fd(::openat(folder, kLockName, kFlags | O_CREAT | O_EXCL, 0640));
  if (!fd && errno == EEXIST) fd.reset(::openat(folder, kLockName, kFlags));
  const int problem = fd ? 0 : errno;
  const bool other = problem == ELOOP || problem == EISDIR || problem == ENXIO || problem == EACCES ||
                     (fd && !is_a_lock(fd.get()));
  const auto found = facts_of(folder, kLockName);
  const std::string file = path + "/" + kLockName;
  if (problem == EACCES && found && is_held(folder, path, *found)) throw in_use(folder, path);
  if (other && found) throw in_the_way(file, *found);
  if (!fd) throw cannot_create(file, problem);
  return fd;
}

}  // namespace

FolderLock lock_folder(int folder, const std::string& path) {
  const std::string file = path + "/" + kLockName;
  FolderLock lock = {.fd = open_lock(folder, path)};
  struct flock byte = locked_byte(F_WRLCK);
  if (::fcntl(lock.fd.get(), F_OFD_SETLK, &byte) == 0) return lock;
  const int problem = errno;
  if (has_no_locks(problem)) {
    lock.missing = problem;
    if (!is_answered(path)) return lock;
  } else if (problem != EAGAIN && problem != EACCES) {
    throw Error(ErrorKind::create, fmt::format("locking {}: {}", file, describe_errno(problem)),
                "--log_dir chooses another folder for the logs");
  }
  throw in_use(folder, path);
}

void sign(const FolderLock& lock, int folder, const std::string& path, const LockHolder& holder) {
  const std::string file = path + "/" + kLockName;
  const auto found = facts_of(folder, kLockName);
  if (found && found->owner != holder.owner) throw in_the_way(file, *found);
  const std::string text = our_text(holder.pid);
  // In this order: ext4 writes a file that was empty for a moment to the disk when it is closed.
  if (::pwrite(lock.fd.get(), text.data(), text.size(), 0) != static_cast<ssize_t>(text.size()) ||
      ::ftruncate(lock.fd.get(), static_cast<off_t>(text.size())) != 0)
    throw cannot_create(file, errno);
}

bool is_locked(const std::string& path) {
  const UniqueFd folder(::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  const auto facts = facts_of(folder.get(), kLockName);
  return facts && is_held(folder.get(), path, *facts);
}

pid_t pid_of_holder(const std::string& path) {
  const UniqueFd folder(::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  const std::string holder = folder ? read_holder(folder.get()) : "";
  const std::size_t digits = holder.find_first_of("0123456789");
  pid_t pid = 0;
  if (digits != std::string::npos)
    std::from_chars(holder.data() + digits, holder.data() + holder.size(), pid);
  return pid;
}

std::string other_host_of_holder(const std::string& path) {
  const UniqueFd folder(::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  const std::string holder = folder ? read_holder(folder.get()) : "";
  return is_elsewhere(holder) && is_locked(path) ? host_in(holder) : "";
}

}  // namespace fleetrun::launch
