#include "launch/starters/start_problem.h"

#include <doctest/doctest.h>

namespace fleetrun::launch::start_problem_test {
namespace {

TEST_CASE("what a starter said last stands behind how it ended") {
  const StartProblem refused =
      describe_start_problem("node 1 (n2)", "ssh exited with code 255", 255,
                             "Welcome\rssh: connect to host n2: Connection refused\n");
  CHECK(refused.line == "node 1 (n2): ssh exited with code 255: ssh: connect to host n2: Connection refused");
  CHECK(refused.exit_code == 75);
  CHECK(describe_start_problem("node 1 (n2)", "ssh was killed by SIGKILL (9)", 137, "").line ==
        "node 1 (n2): ssh was killed by SIGKILL (9)");
  CHECK(describe_start_problem("node 1 (n2)", "it ended", 1, "one\ntwo\n").line ==
        "node 1 (n2): it ended:\n  one\n  two");
}

TEST_CASE("the exit code of a fleetrun that could not start is that of the run") {
  CHECK(describe_start_problem("node 1 (n2)", "ssh exited with code 66", 66, "").exit_code == 66);
  CHECK(describe_start_problem("node 1 (n2)", "srun exited with code 1", 1, "").exit_code == 75);
}

TEST_CASE("a problem arrives as it was sent, on one line") {
  const StartProblem problem = {"node 1 (n2): it ended:\n  \"why\"", 66};
  const std::string text = to_text(problem);
  CHECK(text.find('\n') == text.size() - 1);
  CHECK((parse_start_problem(text) == problem));
}

}  // namespace
}  // namespace fleetrun::launch::start_problem_test
