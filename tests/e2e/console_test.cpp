// The console view: whose lines are shown, and how.
#include <algorithm>
#include <sstream>

#include "e2e/launcher.h"

namespace fleetrun::console_test {
namespace {

// After the banner, sorted: the order between ranks is a matter of chance.
Words shown_lines(const std::string& out) {
  Words lines;
  const std::string end = "CPU mode\n";  // of the banner
  const auto banner = out.find(end);
  std::istringstream text(banner == std::string::npos ? out : out.substr(banner + end.size()));
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  std::sort(lines.begin(), lines.end());
  return lines;
}

TEST_CASE("chosen ranks are shown, told apart by their numbers") {
  const Launch launch;
  const Words rank = {"only", "1", "print", "one"};
  CHECK(shown_lines(launch.run({"--nproc_per_node=3", "--console=1"}, rank).out) == Words{"one"});
  CHECK(shown_lines(launch.run({"--nproc_per_node=3", "--console=all"}, {"print", "x"}).out) ==
        Words{"[0] x", "[1] x", "[2] x"});
  CHECK(shown_lines(launch.run({"--nproc_per_node=3", "--console=none"}, {"print", "x"}).out).empty());
  CHECK(shown_lines(launch
                        .run({"--nproc_per_node=3", "--console=0-1", "--log_prefix={local_rank}/{attempt}: "},
                             {"print", "x"})
                        .out) == Words{"0/0: x", "1/0: x"});
  CHECK(
      shown_lines(launch.run({"--nproc_per_node=2", "--console=all", "--log_prefix="}, {"print", "x"}).out) ==
      Words{"x", "x"});
}

TEST_CASE("the banner follows --banner, and without it --console and --log_level") {
  const Launch launch;
  const auto run = [&](Words flags) {
    flags.insert(flags.end(), {"--nproc_per_node=2", "--device=cpu"});
    return launch.run(flags, {"print", "x"});
  };
  CHECK(contains(run({}).out, "Configuration Arguments"));
  for (const Words& flags : {Words{"--console=none"}, Words{"--log_level=WARNING"}, Words{"--banner=none"}}) {
    const ChildResult result = run(flags);
    CHECK_FALSE(contains(result.out + result.err, "mode"));
    CHECK_FALSE(contains(result.out + result.err, "Distributed Envs"));
  }
  CHECK(contains(run({"--console=none", "--banner=paddle"}).out, "Configuration Arguments"));
  const ChildResult brief = run({"--banner=short"});
  CHECK(brief.out == "x\n");
  CHECK(contains(brief.err, "fleetrun: 2 ranks of " FAKE_WORKER " on the CPU, logs in log/\n"));
}

TEST_CASE("a rank that the run does not have cannot be shown") {
  const Launch launch;
  const ChildResult result = launch.run({"--nproc_per_node=2", "--console=5"}, {});
  CHECK(result.code == 2);
  CHECK(result.err == "fleetrun: error: --console lists rank 5, the run has the ranks 0 to 1\n");
}

TEST_CASE("nothing is lost of two ranks that write much at once, and every line is whole") {
  const Launch launch;
  const ChildResult result =
      launch.run({"--nproc_per_node=2", "--console=all", "--log_prefix={rank}"}, {"flood", "2000000"});
  CHECK(result.code == 0);
  const Words lines = shown_lines(result.out);
  REQUIRE(lines.size() == 40000);
  CHECK(lines.front() == "0" + std::string(99, 'x'));
  CHECK(lines[19999] == lines.front());
  CHECK(lines[20000] == "1" + std::string(99, 'x'));
  CHECK(lines.back() == lines[20000]);
}

TEST_CASE("the log keeps every byte, the console shows what people can read") {
  const Launch launch;
  launch.folder.write("bar.sh", R"(printf '\033[31mred\033[0m\n 1%%\r 2%%\r 3%%\nend\001')");
  const ChildResult result = launch.run_words({"/bin/sh", "bar.sh"});
  CHECK(result.out.ends_with("CPU mode\nred\n 3%\nend?"));
  CHECK(launch.folder.read("log/workerlog.0") == "\x1b[31mred\x1b[0m\n 1%\r 2%\r 3%\nend\x01");
}

TEST_CASE(
    "hunt 1: a message of fleetrun begins on a line of its own, also after an unfinished one of a rank") {
  const Launch launch;
  const std::string command = FLEETRUN_BINARY " -n 1 --banner=none -- sh -c 'printf unfinished; exit 3'";
  const ChildResult together = run_child({"/bin/sh", "-c", command + " 2>&1"}, launch.options());
  CHECK(contains(together.out, "unfinished\nfleetrun: rank 0 exited with code 3"));
  const ChildResult apart = run_child({"/bin/sh", "-c", command}, launch.options());
  CHECK(apart.out == "unfinished");
  CHECK(apart.err.starts_with("fleetrun: "));
}

// As tqdm writes them. fleetrun takes a row for finished a second after the cursor has left it.
TEST_CASE("nested progress bars that have ended do not end the run") {
  const Launch launch;
  launch.folder.write("bars.sh",
                      "for epoch in 1 2; do printf '\\repoch %s' $epoch\n"
                      "for batch in 1 2 3; do printf '\\n\\rbatch %s ##########\\033[A' $batch; done\n"
                      "printf '\\n\\r                  \\r\\033[A'; done\n"
                      "printf '\\repoch 3\\n'; echo first; sleep 1.3; echo second\n");
  const ChildResult result = launch.run_words({"--nproc_per_node=2", "--device=cpu", "/bin/sh", "bars.sh"});
  CHECK_MESSAGE(result.code == 0, result.err);
  CHECK_MESSAGE(contains(result.out, "epoch 3\nfirst\nsecond\n"), result.out);
}

}  // namespace
}  // namespace fleetrun::console_test
