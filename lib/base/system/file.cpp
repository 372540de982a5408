#include "base/system/file.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <limits>

#include <fmt/format.h>

#include "base/error/error.h"
#include "base/system/unique_fd.h"

namespace fleetrun {
namespace {

constexpr mode_t kOfTheUser = 0640, kOfAll = 0644;
constexpr int kMostNames = 100;  // of files that are written at first under a name that nobody has

// `before_rename` gets the complete file under its temporary name.
template <typename BeforeRename>
void put_in_place(const std::string& path, std::string_view content, mode_t mode,
                  BeforeRename before_rename) {
  std::string temporary;
  UniqueFd fd;
  for (int attempt = 0; !fd && attempt < kMostNames; ++attempt) {
    temporary = fmt::format("{}.{}.{}.tmp", path, ::getpid(), attempt);
    fd.reset(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode));
    if (!fd && errno != EEXIST) break;
  }
  if (!fd) throw Error(ErrorKind::create, fmt::format("creating {}: {}", path, describe_errno(errno)));
  try {
    write_all(fd.get(), content, temporary);
    before_rename(fd.get(), temporary);
    if (::rename(temporary.c_str(), path.c_str()) != 0)
      throw Error(ErrorKind::create,
                  fmt::format("renaming {} to {}: {}", temporary, path, describe_errno(errno)));
  } catch (const Error&) {
    ::unlink(temporary.c_str());
    throw;
  }
}

// With 4 KiB pages, the faults alone would take several times as long as reading the file from the page cache.
void reserve_huge_pages(std::string& content, std::size_t bytes) {
  constexpr std::size_t kHugePage = std::size_t{2} << 20U;
  content.reserve(bytes);
  if (bytes < 2 * kHugePage) return;
  const auto start = reinterpret_cast<std::uintptr_t>(content.data());
  const std::size_t before = (kHugePage - start % kHugePage) % kHugePage;
  const std::size_t whole = (bytes - before) / kHugePage * kHugePage;
  ::madvise(content.data() + before, whole, MADV_HUGEPAGE);  // where it is refused, small pages serve
}

}  // namespace

void write_all(int fd, std::string_view content, const std::string& path) {
  while (!content.empty()) {
    const ssize_t count = ::write(fd, content.data(), content.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw Error(ErrorKind::io, fmt::format("writing {}: {}", path, describe_errno(errno)));
    content.remove_prefix(static_cast<std::size_t>(count));
  }
}

std::string read_file(const std::string& path, std::size_t limit) {
  // O_NONBLOCK: a FIFO without a writer must not hold us up before fstat tells that it is one.
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd) throw file_error(errno, "opening", path);
  return read_file(fd.get(), path, limit);
}

std::string read_file(int fd, const std::string& path, std::size_t limit) {
  struct stat facts {};
  if (::fstat(fd, &facts) != 0) throw file_error(errno, "reading", path);
  if (!S_ISREG(facts.st_mode))
    throw Error(ErrorKind::config,
                fmt::format("{} is {}, wanted a regular file", path,
                            S_ISDIR(facts.st_mode) ? "a directory" : "a device, pipe or socket"));
  if (static_cast<std::size_t>(facts.st_size) > limit)
    throw Error(ErrorKind::config,
                fmt::format("{} has {} bytes, the limit is {}", path, facts.st_size, limit));
  std::string content;
  reserve_huge_pages(content, static_cast<std::size_t>(facts.st_size));
  content.resize(static_cast<std::size_t>(facts.st_size));
  std::size_t filled = 0;
  while (filled < content.size()) {
    const ssize_t count = ::read(fd, content.data() + filled, content.size() - filled);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw file_error(errno, "reading", path);
    if (count == 0) break;
    filled += static_cast<std::size_t>(count);
  }
  content.resize(filled);
  return content;
}

void write_file_atomically(const std::string& path, std::string_view content) {
  put_in_place(path, content, kOfTheUser, [](int fd, const std::string& temporary) {
    if (::fsync(fd) != 0)
      throw Error(ErrorKind::io, fmt::format("syncing {}: {}", temporary, describe_errno(errno)));
  });
}

void replace_file(const std::string& path, std::string_view content, Readers readers) {
  put_in_place(path, content, readers == Readers::all ? kOfAll : kOfTheUser, [](int, const std::string&) {});
}

void link_or_copy(const UniqueFd& file, const std::string& path) {
  const std::string source = fmt::format("/proc/self/fd/{}", file.get());
  if (::linkat(AT_FDCWD, source.c_str(), AT_FDCWD, path.c_str(), AT_SYMLINK_FOLLOW) == 0) return;
  struct stat taken {};
  if (::lstat(path.c_str(), &taken) == 0)
    throw Error(ErrorKind::create, fmt::format("creating {}: {}", path, describe_errno(EEXIST)));
  write_file_atomically(path, read_file(source, std::numeric_limits<std::size_t>::max()));
}

bool have_same_content(const UniqueFd& one, const UniqueFd& other) {
  struct stat first {
  }, second{};
  if (::fstat(one.get(), &first) != 0 || ::fstat(other.get(), &second) != 0) return false;
  if (first.st_dev == second.st_dev && first.st_ino == second.st_ino) return true;
  if (first.st_size != second.st_size) return false;
  constexpr std::size_t kBlock = std::size_t{1} << 20U;
  std::string block(kBlock, '\0'), other_block(kBlock, '\0');
  for (off_t place = 0; place < first.st_size;) {
    const ssize_t count = ::pread(one.get(), block.data(), kBlock, place);
    if (count <= 0 || ::pread(other.get(), other_block.data(), kBlock, place) != count) return false;
    const auto bytes = static_cast<std::size_t>(count);
    if (block.compare(0, bytes, other_block, 0, bytes) != 0) return false;
    place += count;
  }
  return true;
}

void sync_folder(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  // EINVAL: a file system that has no such thing.
  if (!fd || (::fsync(fd.get()) != 0 && errno != EINVAL))
    throw Error(ErrorKind::io, fmt::format("syncing folder {}: {}", path, describe_errno(errno)));
}

std::vector<std::string> names_in(int folder) {
  std::vector<std::string> names;
  UniqueFd fd(::openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  DIR* const stream = fd ? ::fdopendir(fd.get()) : nullptr;
  if (stream == nullptr) return names;
  fd.release();                                    // closedir closes it
  while (const dirent* entry = ::readdir(stream))  // NOLINT(concurrency-mt-unsafe): the stream is ours alone
    if (const std::string name = entry->d_name; name != "." && name != "..") names.push_back(name);
  ::closedir(stream);
  return names;
}

UniqueFd remember_folder(const std::string& path) {
  return UniqueFd(::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
}

std::optional<std::string> path_now(const UniqueFd& folder, const std::string& path) {
  struct stat ours {
  }, there{};
  if (!folder || ::fstat(folder.get(), &ours) != 0) return std::nullopt;
  const auto is_ours = [&](const std::string& at) {
    return ::stat(at.c_str(), &there) == 0 && ours.st_dev == there.st_dev && ours.st_ino == there.st_ino;
  };
  if (is_ours(path)) return path;
  std::error_code problem;
  std::string now = std::filesystem::read_symlink(fmt::format("/proc/self/fd/{}", folder.get()), problem);
  if (!is_ours(now)) return std::nullopt;
  return now;
}

void make_directories(const std::string& path) {
  std::error_code problem;
  std::filesystem::create_directories(path, problem);
  if (!problem && !std::filesystem::is_directory(path, problem))
    problem = std::make_error_code(std::errc::not_a_directory);
  if (!problem) return;
  std::error_code no_link;
  const auto target = std::filesystem::read_symlink(path, no_link);
  if (problem == std::errc::file_exists && !no_link)
    throw Error(ErrorKind::create, fmt::format("creating folder {}: it is a link to {}, which does not exist",
                                               path, target.string()));
  throw Error(ErrorKind::create,
              fmt::format("creating folder {}: {}", path, describe_errno(problem.value())));
}

std::string current_folder() {
  std::error_code problem;
  std::string current = std::filesystem::current_path(problem);
  if (!problem && !current.empty()) return current;
  throw Error(ErrorKind::missing,
              fmt::format("the current folder cannot be used: {}", describe_errno(problem.value())),
              "it was removed or belongs to somebody else; start from another one");
}

}  // namespace fleetrun
