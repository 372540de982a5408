// Runs a check as a user without any rights, since tests of file modes prove nothing as root.
#pragma once
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

namespace fleetrun {

// Whether `check` holds in a child process of user nobody.
inline bool holds_without_rights(const std::function<bool()>& check) {
  constexpr uid_t kNobody = 65534;
  constexpr int kHolds = 42;  // an exit code that nothing else has
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    if (::geteuid() == 0 && ::setuid(kNobody) != 0) ::_exit(1);
    ::_exit(check() ? kHolds : 0);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  return WIFEXITED(status) && WEXITSTATUS(status) == kHolds;
}

}  // namespace fleetrun
