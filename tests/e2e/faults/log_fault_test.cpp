// L-1 to L-5: what ranks write.
#include "e2e/faults/faults.h"

namespace fleetrun {
namespace {

TEST_CASE("L-1: many ranks that write as fast as they can lose nothing") {
  const Launch launch;
  const ChildResult result = launch.run({"--nproc_per_node=8"}, {"flood", "5000000", "exit", "0"});
  CHECK(result.code == 0);
  for (int rank = 0; rank < 8; ++rank)
    CHECK(std::filesystem::file_size(launch.folder / "log/workerlog." + std::to_string(rank)) == 5000000);
  const std::string line = std::string(99, 'x') + "\n";
  std::size_t lines = 0;
  for (auto place = result.out.find(line); place != std::string::npos;
       place = result.out.find(line, place + 100))
    ++lines;
  CHECK(lines == 50000);
}

TEST_CASE(
    "L-2: a log keeps every byte: no end of a line for 16 MiB, NUL, broken UTF-8, escapes, returned "
    "carriages") {
  const ScriptLaunch launch;
  const ChildResult result = launch.run_script(
      {}, "head -c 16777216 /dev/zero | tr '\\0' x\nprintf '\\n\\000\\377\\376\\033[31mred\\rover\\n'\n");
  CHECK(result.code == 0);
  const std::string log = launch.folder.read("log/workerlog.0");
  REQUIRE(log.size() > 16777216);
  CHECK(log.find_first_not_of('x') == 16777216);
  CHECK(log.substr(16777216) == std::string("\n\0\377\376\033[31mred\rover\n", 18));
  CHECK(std::count(result.out.begin(), result.out.end(), 'x') >= 16777216);
}

TEST_CASE("L-3: a letter of several bytes that is written in two parts arrives as one") {
  const ScriptLaunch launch;
  const ChildResult result =
      launch.run_script({}, "printf 'caf\\303'; sleep 0.1; printf '\\251 au lait\\n'\n");
  CHECK(result.code == 0);
  CHECK(contains(result.out, "caf\303\251 au lait\n"));
}

TEST_CASE("L-4: a line that is written piece by piece is shown in one") {
  const ScriptLaunch launch;
  ChildOptions options = launch.options();
  const Words inner =
      launch.script_command({"--nproc_per_node=2"},
                            "for i in 1 2 3 4 5; do printf 'one'; sleep 0.02; printf ' and two\\n'; done\n");
  Words words = {"/bin/sh", "-c", "exec \"$@\" 2>&1", "sh"};
  words.insert(words.end(), inner.begin(), inner.end());
  ChildProcess process(words, options);
  REQUIRE(comes_true([&] { return contains(launch.folder.read("log/workerlog.0"), "two"); }, within(5s)));
  process.send(SIGQUIT);  // makes the launcher write, too
  const ChildResult result = process.wait();
  CHECK(result.code == 0);
  std::size_t whole = 0;
  for (auto place = result.out.find("\none and two\n"); place != std::string::npos;
       place = result.out.find("\none and two\n", place + 1))
    ++whole;
  CHECK(whole == 5);
}

TEST_CASE("L-5: what a rank writes after it was told to stop is kept and shown") {
  const ScriptLaunch launch;
  ChildProcess process(
      launch.script_command({},
                            "trap 'sleep 0.1; echo good bye; printf end; exit 0' TERM\n$FAKE ready up\n"
                            "while :; do sleep 0.02; done\n"),
      launch.options());
  launch.pid_in("up");
  process.send(SIGTERM);
  const ChildResult result = process.wait();
  CHECK(result.code == 143);
  CHECK(contains(launch.folder.read("log/workerlog.0"), "good bye\nend"));
  CHECK(contains(result.out, "good bye\nend"));
}

}  // namespace
}  // namespace fleetrun
