// fleetrun logs, during a run and after it.
#include <sys/stat.h>

#include "e2e/launcher.h"

namespace fleetrun::logs_command_test {
namespace {

TEST_CASE("logs shows what ranks wrote: some, matching, and with a prefix of one's own") {
  const Launch launch;
  CHECK(launch.run({"--nproc_per_node=3"}, {"print", "one", "print", "two"}).code == 0);
  CHECK(launch.run_words({"logs"}).out == "[0] one\n[0] two\n[1] one\n[1] two\n[2] one\n[2] two\n");
  CHECK(launch.run_words({"logs", "--rank=1"}).out == "one\ntwo\n");
  CHECK(launch.run_words({"logs", "--rank", "0,2", "--grep", "^t"}).out == "[0] two\n[2] two\n");
  CHECK(launch.run_words({"logs", "--rank=2", "--log_prefix={rank}> "}).out == "2> one\n2> two\n");
  CHECK(launch.run_words({"logs", "--rank=1-2", "--log_prefix="}).out.starts_with("one\ntwo\n"));
  CHECK(launch.run_words({"logs", "--rank=1", "-f"}).out == "one\ntwo\n");  // the run is over
  CHECK(launch.run_words({"logs", "--grep=("}).code == 2);
  CHECK(launch.run_words({"logs", "--since=yesterday"}).code == 2);
}

TEST_CASE("logs puts the number of the attempt before its lines, and refuses what it does not know") {
  const Launch launch;
  launch.run({"--nproc_per_node=1", "--max_restart=1", "--restart_delay=0"}, {"print", "line", "exit", "1"});
  CHECK(launch.run_words({"logs", "--log_prefix=#{attempt} "}).out == "#1 line\n");
  CHECK(launch.run_words({"logs", "--log_dir=log/attempt-0", "--log_prefix=#{attempt} "}).out == "#0 line\n");
  const ChildResult refused = launch.run_words({"logs", "--log_prefix={time} "});
  CHECK(refused.code == 2);
  CHECK(contains(refused.err, "--log_prefix has {time}, which is known only during the run"));
}

TEST_CASE("logs --since shows nothing of a run that ended before") {
  const Launch launch;
  CHECK(launch.run({}, {"print", "old"}).code == 0);
  CHECK(launch.run_words({"logs", "--since=0s"}).out.empty());
  CHECK(launch.run_words({"logs", "--since=1h"}).out == "old\n");
}

TEST_CASE("logs -f goes on until the run is over, and has all of it") {
  const Launch launch;
  Words words = {"/bin/sh", "-c", "exec \"$@\" > output",
                 "sh"};  // a pipe that nobody reads would keep the run from its end
  const Words command = Launch::command({"--nproc_per_node=2"}, {"print", "first", "ready", "up.%r", "sleep",
                                                                 "1", "flood", "300000", "print", "last"});
  words.insert(words.end(), command.begin(), command.end());
  ChildProcess run(words, launch.options());
  launch.pid_in("up.0");
  launch.pid_in("up.1");
  const ChildResult logs = launch.run_words({"logs", "-f", "--rank=1"});
  CHECK(logs.code == 0);
  CHECK(logs.out == launch.folder.read("log/workerlog.1"));
  CHECK(logs.out.ends_with("last\n"));
  CHECK(run.wait().code == 0);
}

TEST_CASE("logs -f has every attempt of a run that restarts faster than it looks, the last one, too") {
  const Launch launch;
  launch.folder.write("fail.sh",
                      "echo attempt $TORCHELASTIC_RESTART_COUNT\nwhile ! test -e go; do sleep 0.02; done\n"
                      "sleep 0.1; test $TORCHELASTIC_RESTART_COUNT = 2\n");
  launch.folder.write("follow.sh", "\"$1\" logs -f | tee seen\n");
  ChildProcess run({FLEETRUN_BINARY, "--max_restart=9", "--restart_delay=0.1", "/bin/sh", "fail.sh"},
                   launch.options());
  REQUIRE(comes_true([&] { return launch.folder.has("log/workerlog.0"); }, 60s));
  ChildProcess logs({"/bin/sh", "follow.sh", FLEETRUN_BINARY}, launch.options());
  REQUIRE(comes_true([&] { return launch.folder.read("seen") == "attempt 0\n"; }, 60s));
  launch.folder.write("go", "");
  CHECK(run.wait().code == 0);
  CHECK(logs.wait().code == 0);
  CHECK(launch.folder.read("seen") == "attempt 0\nattempt 1\nattempt 2\n");
}

TEST_CASE("logs of ranks that have none is not an empty success") {
  const Launch launch;
  CHECK(launch.run({}, {"print", "x"}).code == 0);
  for (const char* ranks : {"--rank=99", "--rank=0,99", "--rank=0-99"}) {
    const ChildResult result = launch.run_words({"logs", ranks});
    CHECK(result.code == 66);
    CHECK(result.err == "fleetrun: error: log/ has no log of rank 99; the last log is that of rank 0\n");
  }
}

TEST_CASE("a pipe in the place of the file that tells when ranks wrote does not keep logs waiting") {
  const Launch launch;
  REQUIRE(launch.run({}, {"print", "hello"}).code == 0);
  std::filesystem::remove(launch.folder / "log/.times");
  REQUIRE(::mkfifo((launch.folder / "log/.times").c_str(), 0600) == 0);
  for (const Words& words : {Words{"logs"}, Words{"logs", "--since=1h"}}) {
    const ChildResult result = launch.run_words(words);
    CHECK(result.code == 0);
    CHECK(result.out == "hello\n");
  }
}

TEST_CASE("logs -f ends when its reader goes away, though the ranks write nothing more") {
  const Launch launch;
  ChildProcess run(Launch::command({}, {"print", "once", "ready", "up", "sleep", "100"}), launch.options());
  launch.pid_in("up");
  launch.folder.write("head.sh", "( \"$1\" logs -f; echo $? > code ) | head -n 1\n");
  CHECK(run_child({"/bin/sh", "head.sh", FLEETRUN_BINARY}, launch.options()).out == "once\n");
  CHECK(launch.folder.read("code") == "0\n");
  CHECK(is_alive(run.pid()));
}

TEST_CASE("a reader that stops reading ends logs") {
  const Launch launch;
  CHECK(launch.run({}, {"flood", "1000000"}).code == 0);
  launch.folder.write("head.sh", "#!/bin/sh\n\"$1\" logs | head -n 1 | wc -c\n");
  CHECK(run_child({"/bin/sh", "head.sh", FLEETRUN_BINARY}, launch.options()).out == "100\n");
}

}  // namespace
}  // namespace fleetrun::logs_command_test
