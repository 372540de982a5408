#include "launch/process/process_state.h"

#include <doctest/doctest.h>

namespace fleetrun::launch::process_state_test {
namespace {

TEST_CASE("every state of a process has words for a table and for a sentence") {
  CHECK(name_state('R') == "running");
  CHECK(name_state('D') == "waiting for I/O");
  CHECK(name_state('t') == "stopped");
  CHECK(describe_state('S') == "waiting");
  CHECK(describe_state('D') == "waiting for a device (D)");
  CHECK(describe_state('t') == "stopped by a debugger (t)");
}

TEST_CASE("an unknown state is its letter") {
  CHECK(name_state('X') == "X");
  CHECK(describe_state('X') == "in state X");
}

}  // namespace
}  // namespace fleetrun::launch::process_state_test
