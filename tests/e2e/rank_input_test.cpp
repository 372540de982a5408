// What ranks read from standard input, if that is no terminal.
#include "e2e/launcher.h"

namespace fleetrun::rank_input_test {
namespace {

// Runs a line of bash in which $fleetrun is fleetrun without its banner.
ChildResult run_line(const Launch& launch, const std::string& line) {
  ChildOptions options = launch.options();
  options.environment["fleetrun"] = FLEETRUN_BINARY " --banner=none --restart_delay=0";
  return run_child({"/bin/bash", "-c", line}, options);
}

TEST_CASE("hunt 23: each rank reads the whole of a file, and no more of it is gone afterwards") {
  const Launch launch;
  launch.folder.write("list", "first\nsecond\nthird\n");
  const ChildResult result = run_line(launch, "{ read line; $fleetrun -n 2 -- cat >&2; cat; } < list");
  CHECK_MESSAGE(result.code == 0, result.err);
  for (const char* log : {"log/workerlog.0", "log/workerlog.1"})
    CHECK(launch.folder.read(log) == "second\nthird\n");
  CHECK(result.out == "second\nthird\n");
}

TEST_CASE("hunt 23: a restarted rank reads a file from its beginning") {
  const Launch launch;
  launch.folder.write("train.sh",
                      "echo attempt $TORCHELASTIC_RESTART_COUNT\n[ $TORCHELASTIC_RESTART_COUNT = 1 ]\n");
  const ChildResult result = run_line(launch, "$fleetrun -n 1 --max_restart=2 -- sh < train.sh");
  CHECK_MESSAGE(result.code == 0, result.err);
  CHECK(launch.folder.read("log/workerlog.0") == "attempt 1\n");
}

TEST_CASE("hunt 23: what comes through a pipe goes to the first rank") {
  const Launch launch;
  const ChildResult result = run_line(launch, "echo words | $fleetrun -n 3 -- cat");
  CHECK_MESSAGE(result.code == 0, result.err);
  CHECK(launch.folder.read("log/workerlog.0") == "words\n");
  for (const char* log : {"log/workerlog.1", "log/workerlog.2"}) CHECK(launch.folder.read(log).empty());
}

TEST_CASE("hunt 23: ranks that have read a pipe are not started again") {
  const Launch launch;
  const ChildResult result = run_line(
      launch, "mkfifo pipe; exec 5<>pipe; echo 'exit 3' >&5; $fleetrun -n 1 --max_restart=2 -- sh < pipe");
  CHECK(result.code == 3);
  for (
      const char* words :
      {"rank 0 exited with code 3",
       "error: the ranks have read standard input, which is a pipe or a socket: started again, they would miss what they have read\n",
       "  hint: let them read it from a file (< FILE), or give them no input (< /dev/null)\n"})
    CHECK_MESSAGE(contains(result.err, words), result.err);
}

TEST_CASE("ranks that leave a pipe alone are started again") {
  const Launch launch;
  const ChildResult result = run_line(
      launch, "echo words | $fleetrun -n 1 --max_restart=2 -- sh -c '[ $TORCHELASTIC_RESTART_COUNT = 1 ]'");
  CHECK_MESSAGE(result.code == 0, result.err);
}

}  // namespace
}  // namespace fleetrun::rank_input_test
