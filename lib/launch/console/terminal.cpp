#include "launch/console/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

namespace fleetrun::launch {

bool can_erase_lines(const Environment& environment) {
  const std::string kind = environment.get_or("TERM", "");
  return !kind.empty() && kind != "dumb";
}

// The middle process has a process group of its own; the shell knows that of its parent, the front process.
bool is_in_foreground(int terminal_fd) {
  const pid_t foreground = ::tcgetpgrp(terminal_fd);
  return foreground > 0 && foreground == ::getpgid(::getppid());
}

std::size_t terminal_width(int terminal_fd) {
  constexpr std::size_t kUsualWidth = 80;
  winsize size{};
  if (::ioctl(terminal_fd, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return kUsualWidth;
  return size.ws_col;
}

}  // namespace fleetrun::launch
