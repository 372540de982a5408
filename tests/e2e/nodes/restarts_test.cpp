// --max_restart over several nodes: all of them start again, or none.
#include "e2e/nodes/cluster.h"

namespace fleetrun::restarts_test {
namespace {

TEST_CASE("when a rank fails once, all nodes run again and end with 0") {
  for (const char* failing : {"0", "2"}) {
    CAPTURE(failing);
    Cluster cluster(2);
    const std::string script =
        "echo attempt $TORCHELASTIC_RESTART_COUNT endpoint $PADDLE_CURRENT_ENDPOINT of "
        "$PADDLE_TRAINER_ENDPOINTS; "
        "[ $TORCHELASTIC_RESTART_COUNT = 1 ] && exit 0; [ $RANK = " +
        std::string(failing) + " ] && exit 3; exec sleep 100";
    const auto ends = cluster.run(
        {"--nproc_per_node=2", "--max_restart=1", "--restart_delay=0.1", "--", "/bin/sh", "-c", script});
    for (const ChildResult& end : ends) {
      CHECK_MESSAGE(end.code == 0, end.err);
      CHECK_MESSAGE(contains(end.err, "restart 1 of at most 1 in 0.1 s"), end.err);
      CHECK_MESSAGE(contains(end.err, "rank " + std::string(failing) + " exited with code 3"), end.err);
    }
    std::string endpoints;
    for (const int node : {0, 1})
      for (const int rank : {0, 1}) {
        const std::string log = cluster.log(node, rank);
        CHECK(log.starts_with("attempt 1 endpoint "));
        const std::string all = log.substr(log.find(" of "));
        CHECK((endpoints.empty() || endpoints == all));
        endpoints = all;
        CHECK(std::filesystem::exists(cluster.folder(node) + "/log/attempt-0/workerlog." +
                                      std::to_string(rank)));
      }
    const auto report = cluster.report(0);
    CHECK(report["cause"] == "finished");
    CHECK(report["ranks"].size() == 4);
    REQUIRE(report["earlier_attempts"].size() == 1);
    CHECK(report["earlier_attempts"][0]["exit_code"] == 3);
    CHECK(contains(report["earlier_attempts"][0]["message"].dump(),
                   "rank " + std::string(failing) + " exited with code 3"));
    CHECK(cluster.nothing_left());
  }
}

TEST_CASE("a node whose ranks have finished names the rank elsewhere that makes the run start again") {
  Cluster cluster(2);
  // Rank 1 fails once rank 0 is gone.
  const char* const script =
      "[ $TORCHELASTIC_RESTART_COUNT = 1 ] && exit 0;"
      "[ $RANK = 0 ] && { echo $$ > ../pid.new; mv ../pid.new ../pid; exit 0; };"
      "while [ ! -e ../pid ] || grep -q '^State:.[^Z]' /proc/$(cat ../pid)/status; do sleep 0.02; done; exit 9";
  for (const ChildResult& end : cluster.run(
           {"--nproc_per_node=1", "--max_restart=1", "--restart_delay=0.1", "--", "/bin/sh", "-c", script})) {
    CHECK_MESSAGE(end.code == 0, end.err);
    CHECK_MESSAGE(contains(end.err, "rank 1 exited with code 9"), end.err);
  }
  const nlohmann::json earlier = cluster.report(0)["earlier_attempts"][0];
  CHECK(contains(earlier["message"].dump(), "rank 1 exited with code 9"));
  CHECK(earlier["exit_code"] == 9);
}

TEST_CASE(
    "hunt: a node that cannot start again ends all nodes with the code of the failure before, which all name") {
  for (const int blocked : {0, 1}) {
    CAPTURE(blocked);
    Cluster cluster(2);
    const std::string number = std::to_string(blocked), in_the_way = "log/attempt-0";
    const std::string script = "[ $RANK = " + number + " ] && echo x > " + in_the_way +
                               "; [ $RANK = 0 ] && exec sleep 100; until [ -e ../node" + number + "/" +
                               in_the_way + " ]; do sleep 0.02; done; exit 5";
    for (const ChildResult& end : cluster.run({"--nproc_per_node=1", "--max_restart=2", "--restart_delay=0.1",
                                               "--grace=0.5", "--", "/bin/sh", "-c", script})) {
      CHECK_MESSAGE(end.code == 5, end.err);
      CHECK_MESSAGE(contains(end.err, "log/attempt-0 is in the way"), end.err);
      CHECK_MESSAGE(contains(end.err, "rank 1 exited with code 5"), end.err);
    }
    CHECK(cluster.report(0)["exit_code"] == 5);
    CHECK(cluster.report(1)["exit_code"] == 5);
    CHECK(cluster.nothing_left());
  }
}

TEST_CASE("a failure that comes back at once is a crash loop on all nodes: 93") {
  Cluster cluster(2);
  const auto ends = cluster.run({"--nproc_per_node=1", "--max_restart=2", "--restart_delay=0.1", FAKE_WORKER,
                                 "only", "1", "exit", "3"});
  for (const ChildResult& end : ends) {
    CHECK_MESSAGE(end.code == 93, end.err);
    CHECK_MESSAGE(contains(end.err, "fleetrun: gave up after 3 attempts: restarting does not help\n"),
                  end.err);
  }
  for (const int node : {0, 1}) {
    CHECK(cluster.report(node)["crash_loop"] == true);
    CHECK(cluster.report(node)["exit_code"] == 93);
  }
}

TEST_CASE("codes that another start does not help do not start any node again") {
  Cluster cluster(2);
  for (const ChildResult& end :
       cluster.run({"--nproc_per_node=1", "--max_restart=2", FAKE_WORKER, "only", "1", "exit", "78"})) {
    CHECK(end.code == 78);
    CHECK_FALSE(contains(end.err, "restart 1"));
  }
}

TEST_CASE("Ctrl-C in the pause before a restart ends all nodes, whichever gets it") {
  for (const int node : {0, 1}) {
    CAPTURE(node);
    Cluster cluster(2);
    cluster.start({"--nproc_per_node=1", "--max_restart=1", "--restart_delay=50", FAKE_WORKER, "only", "1",
                   "exit", "3"});
    for (const int each : {0, 1}) REQUIRE(cluster.says(each, "restart 1 of at most 1 in 50 s"));
    cluster.send(node, SIGINT);
    for (const ChildResult& end : cluster.ends(10s)) {
      CHECK(end.code == 130);
      CHECK_MESSAGE(contains(end.err, "stopped by SIGINT (2) on node " + std::to_string(node)), end.err);
    }
    for (const int each : {0, 1}) {
      CHECK(cluster.report(each)["exit_code"] == 130);
      CHECK(cluster.end_in_report(each) == "stopped by 2");
    }
    CHECK(cluster.nothing_left());
  }
}

// Rank 0 fails, and rank 1 takes its time to end.
Words fails_once_and_ends_slowly(const Cluster& cluster) {
  return {
      "--nproc_per_node=1",
      "--max_restart=1",
      "--restart_delay=0.1",
      "--grace=4",
      "--",
      "/bin/sh",
      "-c",
      "trap 'echo > " + (cluster.shared() / "asked") + "' TERM; echo $$ > " + (cluster.shared() / "$RANK") +
          "; [ $TORCHELASTIC_RESTART_COUNT = 1 ] && exit 0; [ $RANK = 0 ] && { until [ -e " +
          (cluster.shared() / "fail") + " ]; do sleep 0.05; done; exit 3; }; while :; do sleep 0.1; done"};
}

TEST_CASE("SIGTERM while ranks end after a failure: no node starts again, whichever gets it") {
  for (const int node : {0, 1}) {
    CAPTURE(node);
    Cluster cluster(2);
    cluster.start(fails_once_and_ends_slowly(cluster));
    for (const char* rank : {"0", "1"}) cluster.pid_in(rank);
    cluster.shared().write("fail", "");
    REQUIRE(comes_true([&] { return cluster.shared().has("asked"); }, 20s));  // rank 1 to end
    cluster.send(node, SIGTERM);
    for (const ChildResult& end : cluster.ends(20s)) {
      CHECK_MESSAGE(end.code == 3, end.err);
      CHECK_MESSAGE(!contains(end.err, "restart 1"), end.err);
    }
    CHECK(cluster.nothing_left());
  }
}

// One that was just starting a program waits (D) until that program, which is stopped, goes on.
bool is_stopped_shell(pid_t pid) { return state_of(pid) == 'T' || state_of(pid) == 'D'; }

TEST_CASE("a rank that fails while all are stopped by Ctrl-Z: when the run goes on, all nodes start again") {
  Cluster cluster(2);
  cluster.start(fails_once_and_ends_slowly(cluster));
  const pid_t first = cluster.pid_in("0");
  const pid_t second = cluster.pid_in("1");
  cluster.send(1, SIGTSTP);
  for (const pid_t pid : {first, second})
    REQUIRE_MESSAGE(comes_true([&] { return is_stopped_shell(pid); }, 20s),
                    (cluster.errors(0) + cluster.errors(1)));
  ::kill(first, SIGKILL);
  REQUIRE(comes_true([&] { return !is_alive(first); }, 20s));
  cluster.send(1, SIGCONT);
  for (const ChildResult& end : cluster.ends(20s)) {
    CHECK_MESSAGE(end.code == 0, end.err);
    CHECK_MESSAGE(contains(end.err, "restart 1 of at most 1"), end.err);
  }
  CHECK(cluster.nothing_left());
}

TEST_CASE("--timeout that passes in the pause before a restart ends the run then") {
  Cluster cluster(2);
  cluster.start({"--nproc_per_node=1", "--max_restart=1", "--restart_delay=50", "--timeout=1.5", FAKE_WORKER,
                 "only", "1", "exit", "3"});
  for (const ChildResult& end : cluster.ends(20s)) {
    CHECK(end.code == 124);
    CHECK_MESSAGE(contains(end.err, "restart 1 of at most 1 in 50 s"), end.err);
    CHECK_MESSAGE(contains(end.err, "--timeout: 1.5 s have passed\n"), end.err);
  }
  CHECK(cluster.report(1)["cause"] == "timed_out");
  CHECK(cluster.nothing_left());
}

TEST_CASE("a node that is killed in the pause before a restart ends the others with 75") {
  Cluster cluster(2);
  cluster.start({"--nproc_per_node=1", "--max_restart=1", "--restart_delay=50", FAKE_WORKER, "pid",
                 cluster.shared() / "%r", "only", "1", "exit", "3"});
  for (const int each : {0, 1}) REQUIRE(cluster.says(each, "restart 1 of at most 1 in 50 s"));
  ::kill(cluster.front(1), SIGKILL);
  const ChildResult end = cluster.end_of(0, 10s);
  CHECK(end.code == 75);
  CHECK_MESSAGE(contains(end.err, "node 1 (127.0.0.2"), end.err);
  CHECK(cluster.nothing_left());
}

TEST_CASE("a node that is lost ends the run, restarts or not") {
  Cluster cluster(2);
  cluster.start({"--nproc_per_node=1", "--max_restart=3", "--restart_delay=0.1", FAKE_WORKER, "pid",
                 cluster.shared() / "%r", "sleep", "100"});
  const pid_t rank = cluster.pid_in("1");
  cluster.pid_in("0");
  ::kill(parent_of(rank), SIGKILL);
  const ChildResult end = cluster.end_of(0);
  CHECK(end.code == 75);
  CHECK_FALSE(contains(end.err, "restart 1"));
  CHECK(cluster.nothing_left());
}

TEST_CASE("Ctrl-Z on one node in the pause before a restart holds the ranks of all nodes until SIGCONT") {
  Cluster cluster(2);
  cluster.start({"--nproc_per_node=1", "--max_restart=1", "--restart_delay=1.5", "--", "/bin/sh", "-c",
                 "[ $TORCHELASTIC_RESTART_COUNT = 0 ] && exit 3; exec " + std::string(FAKE_WORKER) + " pid " +
                     (cluster.shared() / "again.%r")});
  REQUIRE(cluster.says(0, "restart 1 of at most 1 in 1.5 s"));
  cluster.send(1, SIGTSTP);
  REQUIRE(comes_true([&] { return state_of(cluster.front(1)) == 'T'; }, within(1s)));
  CHECK_FALSE(
      comes_true([&] { return cluster.shared().has("again.0") || cluster.shared().has("again.1"); }, 2500ms));
  cluster.send(1, SIGCONT);
  for (const ChildResult& end : cluster.ends()) CHECK_MESSAGE(end.code == 0, end.err);
  CHECK(cluster.shared().has("again.0"));
}

TEST_CASE("after Ctrl-C in the pause before a restart the file of metrics has the exit code of the run") {
  Cluster cluster(2);
  cluster.start(
      {"--metrics_file=m.prom", "--max_restart=1", "--restart_delay=100", FAKE_WORKER, "exit", "3"});
  REQUIRE(cluster.says(0, "restart 1 of at most 1"));
  cluster.send(0, SIGINT);
  for (int node = 0; node < 2; ++node) {
    CHECK(cluster.end_of(node).code == 130);
    CHECK(contains(cluster.read(node, "m.prom"), "\nfleetrun_exit_code 130\n"));
  }
}

}  // namespace
}  // namespace fleetrun::restarts_test
