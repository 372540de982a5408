// What ranks read from a file or a pipe on standard input.
#include <unistd.h>

#include <filesystem>

#include "e2e/launcher.h"
#include "support/leave_out.h"

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

TEST_CASE(
    "hunt 26: ranks that may start again read no pipe, and a warning says so if something waits there") {
  const Launch launch;
  launch.folder.write("words", "words\n");
  const std::string reader = "sh -c 'cat; [ $TORCHELASTIC_RESTART_COUNT = 1 ]'";
  const ChildResult result =
      run_line(launch, "mkfifo pipe; exec 5<>pipe; cat words >&5; $fleetrun -n 1 --max_restart=2 -- " +
                           reader + " < pipe");
  CHECK_MESSAGE(result.code == 0, result.err);
  CHECK_MESSAGE(
      contains(
          result.err,
          "the ranks read nothing from the pipe on standard input, because --max_restart may start them again"),
      result.err);
  CHECK(launch.folder.read("log/workerlog.0").empty());
  const ChildResult silent = run_line(
      launch, "mkfifo quiet; exec 6<>quiet; $fleetrun -n 1 --max_restart=2 -- " + reader + " < quiet");
  CHECK_FALSE(contains(silent.err, "standard input"));
}

TEST_CASE("hunt 26: ranks read a file that their user may not open") {
  if (::geteuid() != 0) LEAVE_OUT("only root can become another user");
  const Launch launch;
  launch.folder.write("secret", "first\nsecond\n");
  std::filesystem::permissions(launch.folder / "secret", std::filesystem::perms::owner_read);
  std::filesystem::permissions(launch.folder.path(), std::filesystem::perms::all);
  const ChildResult result = run_line(
      launch,
      "{ read line; setpriv --reuid=65534 --clear-groups env HOME=$PWD $fleetrun -n 2 --max_restart=1 -- sh -c 'cat; [ $TORCHELASTIC_RESTART_COUNT = 1 ]'; } < secret");
  CHECK_MESSAGE(result.code == 0, result.err);
  for (const char* log : {"log/workerlog.0", "log/workerlog.1"}) CHECK(launch.folder.read(log) == "second\n");
}

}  // namespace
}  // namespace fleetrun::rank_input_test
