#include "base/system/standard_output.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "base/error/error.h"

namespace fleetrun {
namespace {

// The other side of a pipe may have made it non-blocking.
void wait_for_room() {
  pollfd one{.fd = STDOUT_FILENO, .events = POLLOUT, .revents = 0};
  ::poll(&one, 1, -1);
}

// Only a process that ran ranks before, and so ignores SIGPIPE, sees EPIPE. It ends like one that does not.
[[noreturn]] void give_up(int problem) {
  if (problem == EPIPE) {
    ::signal(SIGPIPE, SIG_DFL);
    ::raise(SIGPIPE);
  }
  throw Error(ErrorKind::io, "writing to stdout: " + describe_errno(problem));
}

}  // namespace

void print_answer(std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = ::write(STDOUT_FILENO, text.data(), text.size());
    if (count >= 0)
      text.remove_prefix(static_cast<std::size_t>(count));
    else if (errno == EAGAIN)
      wait_for_room();
    else if (errno != EINTR)
      give_up(errno);
  }
}

}  // namespace fleetrun
