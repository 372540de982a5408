#include "launch/process/exit_status.h"

#include <sys/wait.h>

#include <doctest/doctest.h>

namespace fleetrun::launch::exit_status_test {
namespace {

siginfo_t info_of(int code, int status) {
  siginfo_t info{};
  info.si_code = code;
  info.si_status = status;
  return info;
}

TEST_CASE("a code is passed on, a signal counts from 128") {
  CHECK(ExitStatus::from_siginfo(info_of(CLD_EXITED, 255)).exit_code() == 255);
  CHECK(ExitStatus::from_siginfo(info_of(CLD_KILLED, SIGKILL)).exit_code() == 137);
  CHECK(ExitStatus::from_siginfo(info_of(CLD_DUMPED, SIGSEGV)).exit_code() == 139);
}

TEST_CASE("only code 0 is well") {
  CHECK(ExitStatus{ExitStatus::How::exited, 0}.ok());
  CHECK_FALSE(ExitStatus{ExitStatus::How::exited, 1}.ok());
  CHECK_FALSE(ExitStatus{ExitStatus::How::signaled, 0}.ok());
}

TEST_CASE("an end is described in words, signals by name and number") {
  CHECK(ExitStatus{ExitStatus::How::exited, 3}.describe() == "exited with code 3");
  CHECK(ExitStatus{ExitStatus::How::signaled, SIGKILL}.describe() == "was killed by SIGKILL (9)");
  CHECK(describe_signal(SIGTERM) == "SIGTERM (15)");
  CHECK(describe_signal(SIGRTMIN + 3) == "signal " + std::to_string(SIGRTMIN + 3));
}

}  // namespace
}  // namespace fleetrun::launch::exit_status_test
