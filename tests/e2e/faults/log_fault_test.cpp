// L-1 to L-5: what ranks write.
#include <sstream>

#include "e2e/faults/faults.h"

namespace fleetrun::log_fault_test {
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

// What the launcher took of the processors and of memory so far.
struct Use {
  double cpu_seconds = 0;
  long peak_kib = 0;
};
Use use_of(pid_t pid) {
  std::istringstream stat(read_all("/proc/" + std::to_string(pid) + "/stat"));
  std::string word;
  for (int i = 0; i < 13; ++i) stat >> word;
  double user = 0, system = 0;
  stat >> user >> system;
  const std::string status = read_all("/proc/" + std::to_string(pid) + "/status");
  return {(user + system) / static_cast<double>(::sysconf(_SC_CLK_TCK)),
          std::atol(status.c_str() + status.find("VmHWM:") + 6)};
}

// FLEETRUN_TEST_LOG_SECONDS=60 for the minute that was promised.
TEST_CASE(
    "L-1: eight ranks that write 10,000 lines a second lose nothing and cost the launcher next to nothing") {
  const char* wanted = std::getenv("FLEETRUN_TEST_LOG_SECONDS");
  const int seconds = wanted == nullptr ? 2 : std::atoi(wanted);
  const int lines = 10000 * seconds;
  const Launch launch;
  ChildProcess process(
      Launch::command({"--nproc_per_node=8", "--console=none"},
                      {"ready", "up.%r", "lines", std::to_string(lines), "ready", "done.%r", "sleep", "100"}),
      launch.options());
  const pid_t middle = parent_of(launch.pid_in("up.0"));
  const auto start = std::chrono::steady_clock::now();
  const Use before = use_of(middle);
  for (int rank = 0; rank < 8; ++rank)
    REQUIRE(comes_true([&] { return launch.folder.has("done." + std::to_string(rank)); },
                       within(10s + 4s * seconds)));
  const Use after = use_of(middle);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  process.send(SIGTERM);
  CHECK(process.wait().code == 143);
  for (int rank = 0; rank < 8; ++rank)
    CHECK(std::filesystem::file_size(launch.folder / "log/workerlog." + std::to_string(rank)) ==
          static_cast<std::size_t>(lines) * 100);
  CHECK(after.cpu_seconds - before.cpu_seconds <= 0.05 * took.count() * testing::kSlowdown);
  // The address sanitizer keeps what was freed. The ranks write 16 MB in 2 s.
  CHECK(after.peak_kib - before.peak_kib < 1024 * testing::kSlowdown);
}

// FLEETRUN_TEST_LINE_BYTES=1000000000 for the gigabyte that was promised.
TEST_CASE(
    "L-2: a log keeps every byte: no end of a line for 200 MB, NUL, broken UTF-8, escapes, returned carriages") {
  const char* wanted = std::getenv("FLEETRUN_TEST_LINE_BYTES");
  const std::string bytes = wanted == nullptr ? "200000000" : wanted;
  const std::size_t size = std::stoul(bytes);
  const ScriptLaunch launch;
  ChildProcess process(launch.script_command({}, "head -c " + bytes + " /dev/zero | tr '\\0' x\n" +
                                                     "printf '\\n\\000\\377\\376\\033[31mred\\rover\\n'\n"),
                       launch.options());
  const ChildResult result = process.wait(within(60s));
  CHECK(result.code == 0);
  const std::string log = launch.folder.read("log/workerlog.0");
  REQUIRE(log.size() > size);
  CHECK(log.find_first_not_of('x') == size);
  CHECK(log.substr(size) == std::string("\n\0\377\376\033[31mred\rover\n", 18));
  CHECK(static_cast<std::size_t>(std::count(result.out.begin(), result.out.end(), 'x')) >= size);
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
}  // namespace fleetrun::log_fault_test
