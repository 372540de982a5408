#include "launch/process/run_input.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include <fmt/format.h>

#include "base/error/error.h"

namespace fleetrun::launch {
namespace {

constexpr off_t kMostCopied = off_t{64} << 20U;  // bytes

bool is_stream(const struct stat& facts) { return S_ISFIFO(facts.st_mode) || S_ISSOCK(facts.st_mode); }

UniqueFd open_nothing() {
  UniqueFd nothing(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!nothing) throw file_error(errno, "opening", "/dev/null");
  return nothing;
}

UniqueFd share() {
  UniqueFd shared(::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
  return shared ? std::move(shared) : open_nothing();
}

// With a place of its own in the file. Empty if we may not open the file.
UniqueFd open_again(int fd, off_t offset) {
  UniqueFd own(::open(fmt::format("/proc/self/fd/{}", fd).c_str(), O_RDONLY | O_CLOEXEC));
  return own && ::lseek(own.get(), offset, SEEK_SET) == offset ? std::move(own) : UniqueFd();
}

// In memory, from `offset` on. Empty if that is too much.
UniqueFd copy_rest(off_t size, off_t offset) {
  if (size - offset > kMostCopied) return {};
  UniqueFd copy(::memfd_create("standard input", MFD_CLOEXEC));
  std::array<char, 1U << 16U> part;  // NOLINT(cppcoreguidelines-pro-type-member-init): pread() fills it
  for (off_t at = offset; copy;) {
    const ssize_t count = ::pread(STDIN_FILENO, part.data(), part.size(), at);
    if (count == 0) return copy;
    if (count < 0 || ::write(copy.get(), part.data(), static_cast<std::size_t>(count)) != count) return {};
    at += count;
  }
  return copy;
}

}  // namespace

RunInput::RunInput(bool reads_streams) {
  struct stat facts {};
  if (::isatty(STDIN_FILENO) == 1 || ::fstat(STDIN_FILENO, &facts) != 0) return;
  if (is_stream(facts)) {
    kind_ = reads_streams ? Kind::stream : Kind::nothing;
    return;
  }
  const bool is_only_read = (::fcntl(STDIN_FILENO, F_GETFL) & O_ACCMODE) == O_RDONLY;
  kind_ = S_ISREG(facts.st_mode) && is_only_read ? Kind::file : Kind::other;
  if (kind_ == Kind::other) return;
  offset_ = std::max<off_t>(0, ::lseek(STDIN_FILENO, 0, SEEK_CUR));
  if (open_again(STDIN_FILENO, offset_)) return;
  copy_ = copy_rest(facts.st_size, offset_);  // of another user's file, after su or sudo
  offset_ = 0;
  if (!copy_) kind_ = reads_streams ? Kind::stream : Kind::nothing;
}

std::vector<UniqueFd> RunInput::open_for(std::size_t ranks) const {
  std::vector<UniqueFd> inputs;
  inputs.reserve(ranks);
  if (kind_ == Kind::file) {
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      inputs.push_back(open_again(copy_ ? copy_.get() : STDIN_FILENO, offset_));
      if (!inputs.back()) throw file_error(errno, "opening again", "standard input");
    }
    return inputs;
  }
  if (kind_ == Kind::stream || kind_ == Kind::other) inputs.push_back(share());
  if (kind_ != Kind::other) inputs.push_back(open_nothing());
  return inputs;
}

int bytes_in_stream() {
  struct stat facts {};
  int bytes = 0;
  const bool known =
      ::fstat(STDIN_FILENO, &facts) == 0 && is_stream(facts) && ::ioctl(STDIN_FILENO, FIONREAD, &bytes) == 0;
  return known ? bytes : 0;
}

}  // namespace fleetrun::launch
