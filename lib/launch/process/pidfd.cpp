#include "launch/process/pidfd.h"

#include <sys/syscall.h>
#include <unistd.h>

namespace fleetrun::launch {

// By system call: sys/pidfd.h of glibc 2.36 cannot be used from C++.
UniqueFd open_pidfd(pid_t pid) { return UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))); }

bool send_signal(const UniqueFd& pidfd, int signal) {
  return ::syscall(SYS_pidfd_send_signal, pidfd.get(), signal, nullptr, 0) == 0;
}

}  // namespace fleetrun::launch
