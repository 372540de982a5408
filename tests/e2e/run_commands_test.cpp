// ps, stop, signal and logs on a run that goes on.
#include <sys/stat.h>

#include <thread>

#include "e2e/launcher.h"

namespace fleetrun::run_commands_test {
namespace {

TEST_CASE("ps shows the ranks of a run, for people and for programs") {
  const Launch launch;
  ChildProcess run(
      Launch::command({"--nproc_per_node=2", "--job_id=mine"}, {"ready", "up.%r", "sleep", "30"}),
      launch.options());
  const pid_t first = launch.pid_in("up.0");
  launch.pid_in("up.1");
  const auto json = nlohmann::json::parse(launch.run_words({"ps", "--json"}).out);
  CHECK(json["job_id"] == "mine");
  CHECK(json["pid"] == run.pid());
  REQUIRE(json["ranks"].size() == 2);
  CHECK(json["ranks"][0]["pid"] == first);
  CHECK(json["ranks"][0]["memory_mib"].get<double>() > 0);
  const ChildResult text = launch.run_words({"ps"});
  CHECK(text.code == 0);
  CHECK(contains(text.out, "RANK      PID  STATE"));
  CHECK(contains(text.out, std::to_string(first) + "  sleeping"));
}

TEST_CASE("stop ends a run and waits for its end") {
  const Launch launch;
  ChildProcess run(Launch::command({"--nproc_per_node=2"}, {"ready", "up.%r", "sleep", "30"}),
                   launch.options());
  launch.pid_in("up.0");
  launch.pid_in("up.1");
  const ChildResult stop = launch.run_words({"stop"});
  CHECK(stop.code == 0);
  CHECK(stop.out.starts_with("stopped default-"));
  CHECK(run.wait().code == 143);
  CHECK(launch.report()["cause"] == "stopped");
  CHECK_FALSE(launch.folder.has("log/.control"));
}

TEST_CASE("stop --now does not wait for ranks that ignore SIGTERM") {
  const Launch launch;
  ChildProcess run(Launch::command({"--grace=100"}, {"ignore-term", "ready", "up", "sleep", "30"}),
                   launch.options());
  launch.pid_in("up");
  CHECK(launch.run_words({"stop", "--now"}).code == 0);
  CHECK(run.wait().code == 143);
}

TEST_CASE("signal reaches the ranks that are named, by name or number") {
  const Launch launch;
  ChildProcess run(Launch::command({"--nproc_per_node=2"}, {"on-term", "7", "ready", "up.%r", "sleep", "30"}),
                   launch.options());
  launch.pid_in("up.0");
  launch.pid_in("up.1");
  CHECK(launch.run_words({"signal", "CONT"}).out == "sent to rank 0, 1\n");
  CHECK(launch.run_words({"signal", "NOSUCH"}).code == 2);
  const ChildResult wrong = launch.run_words({"signal", "USR1", "--rank=5"});
  CHECK(wrong.code == 2);
  CHECK(wrong.err == "fleetrun: error: the run has the ranks 0 to 1, not 5\n");
  CHECK(launch.run_words({"signal", "15", "--rank", "1"}).out == "sent to rank 1\n");
  CHECK(run.wait().code == 7);
  CHECK(launch.report()["first_failed_rank"] == 1);
}

TEST_CASE("without a run the commands say so") {
  const Launch launch;
  for (const Words& words : {Words{"ps"}, Words{"stop"}, Words{"signal", "USR1"}, Words{"logs"}})
    CHECK(launch.run_words(words).code == 66);
  CHECK(launch.run({}, {"print", "x"}).code == 0);
  const ChildResult result = launch.run_words({"ps"});
  CHECK(result.code == 66);
  CHECK(result.err ==
        "fleetrun: error: no fleetrun uses log/ now\n  hint: --log_dir names the folder of the run\n");
}

TEST_CASE("the socket is for the same user only, also below a path that is longer than a socket's address") {
  const Launch launch;
  const std::string deep(150, 'd');
  ChildProcess run(Launch::command({"--log_dir=" + deep}, {"ready", "up", "sleep", "30"}), launch.options());
  launch.pid_in("up");
  struct stat facts {};
  REQUIRE(::stat((launch.folder / (deep + "/.control")).c_str(), &facts) == 0);
  CHECK((facts.st_mode & 0777) == 0600);
  CHECK(launch.run_words({"ps", "--log_dir", deep}).code == 0);
  CHECK(launch.run_words({"stop", "--log_dir", deep}).code == 0);
}

TEST_CASE("logs shows what ranks wrote: some, matching, and with a prefix of one's own") {
  const Launch launch;
  CHECK(launch.run({"--nproc_per_node=3"}, {"print", "one", "print", "two"}).code == 0);
  CHECK(launch.run_words({"logs"}).out == "[0] one\n[0] two\n[1] one\n[1] two\n[2] one\n[2] two\n");
  CHECK(launch.run_words({"logs", "--rank=1"}).out == "one\ntwo\n");
  CHECK(launch.run_words({"logs", "--rank", "0,2", "--grep", "^t"}).out == "[0] two\n[2] two\n");
  CHECK(launch.run_words({"logs", "--rank=2", "--log_prefix={rank}> "}).out == "2> one\n2> two\n");
  CHECK(launch.run_words({"logs", "--rank=1", "-f"}).out == "one\ntwo\n");  // the run is over
  CHECK(launch.run_words({"logs", "--grep=("}).code == 2);
  CHECK(launch.run_words({"logs", "--since=yesterday"}).code == 2);
}

TEST_CASE("logs -f goes on until the run is over, and has all of it") {
  const Launch launch;
  ChildProcess run(Launch::command({"--nproc_per_node=2"}, {"print", "first", "ready", "up.%r", "sleep", "1",
                                                            "flood", "300000", "print", "last"}),
                   launch.options());
  launch.pid_in("up.0");
  launch.pid_in("up.1");
  const ChildResult logs = launch.run_words({"logs", "-f", "--rank=1"});
  CHECK(logs.code == 0);
  CHECK(logs.out == launch.folder.read("log/workerlog.1"));
  CHECK(logs.out.ends_with("last\n"));
  CHECK(run.wait().code == 0);
}

TEST_CASE("a reader that stops reading ends logs") {
  const Launch launch;
  CHECK(launch.run({}, {"flood", "1000000"}).code == 0);
  launch.folder.write("head.sh", "#!/bin/sh\n\"$1\" logs | head -n 1 | wc -c\n");
  CHECK(run_child({"/bin/sh", "head.sh", FLEETRUN_BINARY}, launch.options()).out == "100\n");
}

}  // namespace
}  // namespace fleetrun::run_commands_test
