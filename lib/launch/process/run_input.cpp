#include "launch/process/run_input.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/error/error.h"

namespace fleetrun::launch {
namespace {

int bytes_waiting() {
  int bytes = 0;
  return ::ioctl(STDIN_FILENO, FIONREAD, &bytes) == 0 ? bytes : 0;
}

UniqueFd open_nothing() {
  UniqueFd nothing(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!nothing) throw file_error(errno, "opening", "/dev/null");
  return nothing;
}

UniqueFd share() {
  UniqueFd shared(::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
  return shared ? std::move(shared) : open_nothing();
}

// With a place of its own in the file. Without a /proc, or where we may not open the file, the place is shared.
UniqueFd open_again(off_t offset) {
  UniqueFd own(::open("/proc/self/fd/0", O_RDONLY | O_CLOEXEC));
  if (own && ::lseek(own.get(), offset, SEEK_SET) == offset) return own;
  return share();
}

}  // namespace

RunInput::RunInput() {
  struct stat facts {};
  if (::isatty(STDIN_FILENO) == 1 || ::fstat(STDIN_FILENO, &facts) != 0) return;
  kind_ = S_ISREG(facts.st_mode)                               ? Kind::file
          : S_ISFIFO(facts.st_mode) || S_ISSOCK(facts.st_mode) ? Kind::stream
                                                               : Kind::other;
  if (kind_ == Kind::file) offset_ = std::max<off_t>(0, ::lseek(STDIN_FILENO, 0, SEEK_CUR));
}

void RunInput::require_unread() {
  const int waiting = bytes_waiting();
  if (was_given_ && waiting < waiting_)
    throw Error(
        ErrorKind::missing,
        "the ranks have read standard input, which is a pipe or a socket: started again, they would miss what "
        "they have read",
        "let them read it from a file (< FILE), or give them no input (< /dev/null)");
  waiting_ = std::max(waiting, waiting_);
  was_given_ = true;
}

std::vector<UniqueFd> RunInput::open_for(std::size_t ranks) {
  std::vector<UniqueFd> inputs;
  if (kind_ == Kind::file) {
    inputs.reserve(ranks);
    for (std::size_t rank = 0; rank < ranks; ++rank) inputs.push_back(open_again(offset_));
    return inputs;
  }
  if (kind_ == Kind::stream) require_unread();
  if (kind_ != Kind::none) inputs.push_back(share());
  if (kind_ != Kind::other) inputs.push_back(open_nothing());
  return inputs;
}

}  // namespace fleetrun::launch
