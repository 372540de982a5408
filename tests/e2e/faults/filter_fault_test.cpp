// Processes that read from a pipe what a rank prints, such as the gzip of `exec > >(gzip > log.gz)`.
#include "e2e/faults/faults.h"

namespace fleetrun::filter_fault_test {
namespace {

// A rank whose output a filter of bash, which is slow, writes to a file.
std::string behind_slow_filter(const std::string& work) {
  return "cat > rank.sh <<'END'\nexec > >(while read -r line; do printf '%s\\n' \"$line\"; done > kept.$RANK) 2>&1\n" +
         work + "\nEND\nexec bash rank.sh\n";
}

TEST_CASE("hunt 150: a filter writes all that its rank has written into the pipe, however the rank ends") {
  for (const int code : {0, 3}) {
    const ScriptLaunch launch;
    const ChildResult result =
        launch.run_script({}, behind_slow_filter("seq 1 8000; echo last\nexit " + std::to_string(code)));
    CHECK(result.code == code);
    const std::string kept = launch.folder.read("kept.0");
    CHECK(std::ranges::count(kept, '\n') == 8001);
    CHECK(kept.ends_with("8000\nlast\n"));
  }
}

// gzip has handlers for SIGTERM and SIGINT, as a program that saves does.
TEST_CASE(
    "hunt 154: if a rank is stopped, its program can print until it has saved, and the filter writes all of it") {
  struct Stop {
    int signal;
    std::string trap, handler;
  };
  const std::string cleans = "trap 'echo cleaned' TERM\n",
                    saves = "trap 'sleep 0.3; echo saved; exit 0' INT TERM; ";
  for (const Stop& stop : {Stop{SIGTERM, "", saves}, Stop{SIGTERM, "", ""}, Stop{SIGTERM, cleans, saves},
                           Stop{SIGTERM, cleans, ""}, Stop{SIGINT, "", saves}, Stop{SIGINT, cleans, saves}}) {
    CAPTURE(stop.signal);
    CAPTURE(stop.trap + stop.handler);
    const ScriptLaunch launch;
    launch.folder.write("rank.sh", "exec > >(gzip > kept.gz) 2>&1\n" + stop.trap + "echo first\nsh -c \"" +
                                       stop.handler + "echo up > up; while :; do sleep 0.02; done\"\n");
    ChildProcess process(launch.script_command({}, "exec bash rank.sh\n"), launch.options());
    REQUIRE(comes_true([&] { return launch.folder.has("up"); }, within(5s)));
    process.send(stop.signal);
    const ChildResult result = process.wait();
    CHECK(result.code == 128 + stop.signal);
    CHECK(result.seconds < seconds_within(8s));
    const std::string kept = run_child({"/bin/sh", "-c", "gzip -dc kept.gz"}, launch.options()).out;
    CHECK(kept.starts_with("first\n"));
    CHECK(contains(kept, "saved\n") == !stop.handler.empty());
    CHECK((stop.signal == SIGINT || contains(kept, "cleaned\n") == !stop.trap.empty()));
  }
}

TEST_CASE("hunt 153: a program without a handler is stopped before the gzip that reads its output") {
  const ScriptLaunch launch;
  ChildProcess process(
      launch.script_command(
          {}, "sh -c 'echo first; echo up > up; while :; do sleep 0.02; done' | gzip > kept.gz\n:\n"),
      launch.options());
  REQUIRE(comes_true([&] { return launch.folder.has("up"); }, within(5s)));
  process.send(SIGTERM);
  const ChildResult result = process.wait();
  CHECK(result.code == 143);
  CHECK(result.seconds < seconds_within(1500ms));
  CHECK(run_child({"/bin/sh", "-c", "gzip -dc kept.gz"}, launch.options()).out == "first\n");
}

TEST_CASE("hunt 153: Ctrl-C ends a script with a pipeline, which does not go on with its next command") {
  const ScriptLaunch launch;
  launch.folder.write("program.sh",
                      "trap 'trap - INT; kill -INT $$' INT; echo up > up; while :; do sleep 0.02; done\n");
  launch.folder.write("rank.sh", "sh program.sh | tee kept\nsleep 100\n");
  ChildProcess process(launch.script_command({}, "exec bash rank.sh\n"), launch.options());
  REQUIRE(comes_true([&] { return launch.folder.has("up"); }, within(5s)));
  process.send(SIGINT);
  const ChildResult result = process.wait();
  CHECK(result.code == 130);
  CHECK(result.seconds < seconds_within(5s));
}

TEST_CASE("hunt 150: a filter sees the end of its pipe if the process that still writes there must end") {
  const ScriptLaunch launch;
  const ChildResult result = launch.run_script(
      {},
      "{ echo first; sleep 100; } | { cat; echo end; } > kept &\nuntil [ -s kept ]; do sleep 0.02; done\n");
  CHECK(result.code == 0);
  CHECK(launch.folder.read("kept") == "first\nend\n");
  CHECK(result.seconds < seconds_within(3s));
}

TEST_CASE("hunt 150: a process that does not read its pipe delays the end by two seconds at most") {
  const ScriptLaunch launch;
  const ChildResult result = launch.run_script({},
                                               "echo unread | $FAKE pid idle sleep 100 &\n"
                                               "until [ -s idle ]; do sleep 0.02; done\n");
  CHECK(result.code == 0);
  CHECK(result.seconds < seconds_within(4s));
  CHECK(
      contains(result.err, "fleetrun: waiting for what still reads the output of a rank from a pipe: pid "));
  CHECK_FALSE(is_alive(launch.pid_in("idle")));
}

TEST_CASE("hunt 153: a filter that does not read yet when its rank ends writes all, too") {
  const ScriptLaunch launch;
  launch.folder.write("rank.sh",
                      "exec > >(exec 3<&0 < /dev/null; sleep 0.02; exec cat <&3 > kept)\necho last\n");
  CHECK(launch.run_script({}, "exec bash rank.sh\n").code == 0);
  CHECK(launch.folder.read("kept") == "last\n");
}

// It begins to read when the file "go" is there.
const char* const kPatientFilter =
    "cat > rank.sh <<'END'\n"
    "exec > >({ until [ -e go ]; do read -r now < /proc/uptime; sleep 0.02; done; cat; } > kept)\n"
    "echo last\nEND\nexec bash rank.sh\n";

bool tells_end(const ScriptLaunch& launch) {
  return comes_true([&] { return contains(launch.run_words({"ps"}).out, "exited with code 0"); }, within(5s));
}

TEST_CASE("hunt 153: `ps` answers while a filter still writes what its rank has printed") {
  const ScriptLaunch launch;
  ChildProcess process(launch.script_command({"--grace=60"}, kPatientFilter), launch.options());
  CHECK(tells_end(launch));
  launch.folder.write("go", "");
  const ChildResult result = process.wait();
  CHECK(result.code == 0);
  CHECK(result.seconds < seconds_within(10s));
  CHECK(launch.folder.read("kept") == "last\n");
}

TEST_CASE("hunt 153: who stops a run does not wait for a filter whose rank has ended") {
  for (const Words& how : {Words{"stop"}, Words{"stop", "--now"}}) {
    const ScriptLaunch launch;
    ChildProcess process(launch.script_command({"--grace=60"}, kPatientFilter), launch.options());
    REQUIRE(tells_end(launch));
    CHECK(launch.run_words(how).code == 0);
    CHECK(process.wait().seconds < seconds_within(10s));
  }
}

}  // namespace
}  // namespace fleetrun::filter_fault_test
