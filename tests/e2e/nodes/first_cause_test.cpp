// Ranks that fail on several nodes: the first one by time is the cause, on all nodes. Signals to one node end all.
#include "e2e/nodes/cluster.h"
#include "support/soak.h"

namespace fleetrun::first_cause_test {
namespace {

// Rank `first` ends with 7 when all ranks are there; so many seconds after its death rank `second` ends with 5.
std::vector<ChildResult> fail_in_order(Cluster& cluster, int first, int second, const std::string& seconds) {
  const auto in_shared = [&](const char* name) { return cluster.shared() / name; };
  const std::string fake = FAKE_WORKER, there = fake + " pid " + in_shared("%r");
  cluster.start({"--nproc_per_node=2", "--", "/bin/sh", "-c",
                 "case $RANK in " + std::to_string(first) + ") exec " + there + " await " + in_shared("go") +
                     " pid " + in_shared("first") + " exit 7;; " + std::to_string(second) + ") exec " +
                     there + " outlive " + in_shared("first") + " sleep " + seconds + " exit 5;; *) exec " +
                     there + " sleep 100;; esac"});
  for (const char* rank : {"0", "1", "2", "3"}) cluster.pid_in(rank);
  cluster.shared().write("go", "");
  return cluster.ends();
}

void check_order(Cluster& cluster, int first, int second) {
  CAPTURE(first);
  const std::string wanted = "fleetrun: rank " + std::to_string(first) + " exited with code 7 (pid ";
  for (const ChildResult& end : fail_in_order(cluster, first, second, "0.02")) {
    CHECK_MESSAGE(end.code == 7, end.err);
    CHECK_MESSAGE(cause_on(end).starts_with(wanted), end.err);
  }
  CHECK(cluster.report(0)["first_failed_rank"] == first);
}

TEST_CASE("of two ranks that fail on two nodes 20 ms apart, the first is named every time") {
  for (int i = 0; i < testing::soak_count(20); ++i) {
    Cluster cluster(2);
    check_order(cluster, i % 2 == 0 ? 0 : 2, i % 2 == 0 ? 2 : 0);
  }
}

TEST_CASE("of two ranks that fail 2 ms apart, the first is named, or both where the clocks cannot tell") {
  for (int i = 0; i < testing::soak_count(10); ++i) {
    Cluster cluster(2);
    const int first = i % 2 == 0 ? 0 : 2;
    const auto ends = fail_in_order(cluster, first, 2 - first, "0.002");
    for (const ChildResult& end : ends) {
      const bool first_named =
          cause_on(end).starts_with("fleetrun: rank " + std::to_string(first) + " exited");
      CHECK_MESSAGE((first_named || contains(end.err, " at the same time: ")), end.err);
      CHECK(cause_on(end) == cause_on(ends.front()));
      CHECK(end.code == ends.front().code);
    }
  }
}

// A rank that prints an exception, as Python does.
constexpr const char* kTraceback =
    "traceback() { printf 'Traceback (most recent call last):\\n  File \"/train.py\", line 3, in <module>\\n%s\\n' \"$1\"; };";

void check_earlier_error(const Cluster& cluster, const std::vector<ChildResult>& ends,
                         const std::string& error) {
  for (const ChildResult& end : ends) {
    CHECK(end.code == 1);
    CHECK_MESSAGE(contains(end.err, "fleetrun: " + error + " (/train.py:3, in <module>)\n"), end.err);
  }
  for (int node = 0; node < cluster.nodes(); ++node)
    CHECK(contains(cluster.report(node)["message"].get<std::string>(), "; " + error));
}

TEST_CASE(
    "hunt 139: a node ends with 0 after an error, another node loses the connection, and all nodes tell the error") {
  Cluster cluster(2);
  const std::string script =
      kTraceback +
      std::string(
          "[ $RANK = 1 ] && { traceback 'FileNotFoundError: shard 3'; echo $$ > ../pid; exit 0; };"
          "until [ -s ../pid ]; do sleep 0.01; done;"
          "until grep -q 'State:.Z' /proc/$(cat ../pid)/status; do sleep 0.01; done;"
          "traceback 'RuntimeError: Connection closed by peer'; exit 1");
  cluster.start({"--nproc_per_node=1", "--", "/bin/sh", "-c", script});
  check_earlier_error(cluster, cluster.ends(),
                      "rank 1 had written an error before: FileNotFoundError: shard 3");
}

// The times of the last writes, which files have to a few milliseconds, tell which one that is.
TEST_CASE("hunt 139: if several nodes have an error, all nodes tell the oldest one") {
  Cluster cluster(3);
  const std::string script =
      kTraceback +
      std::string(
          "[ $RANK = 2 ] && { traceback 'ValueError: bad shard 7'; : > ../closed; exec sleep 60; };"
          "until [ -e ../closed ]; do sleep 0.01; done;"
          "[ $RANK = 1 ] && { sleep 0.1; traceback 'struct.error: unpack'; : > ../second; exec sleep 60; };"
          "until [ -e ../second ]; do sleep 0.01; done;"
          "traceback 'RuntimeError: Connection closed by peer'; exit 1");
  cluster.start({"--nproc_per_node=1", "--", "/bin/sh", "-c", script});
  check_earlier_error(cluster, cluster.ends(), "rank 2 had written an error before: ValueError: bad shard 7");
}

TEST_CASE(
    "hunt 42: all nodes tell the error of a rank that parts from those of another node before it ends") {
  Cluster cluster(2);
  const std::string script =
      kTraceback +
      std::string(
          "[ $RANK = 1 ] && { traceback 'FileNotFoundError: shard 3'; : > ../closed; sleep 60; };"
          "until [ -e ../closed ]; do sleep 0.01; done;"
          "traceback 'RuntimeError: Connection closed by peer'; exit 1");
  cluster.start({"--nproc_per_node=1", "--", "/bin/sh", "-c", script});
  const std::vector<ChildResult> ends = cluster.ends();
  check_earlier_error(cluster, ends, "rank 1 had written an error before: FileNotFoundError: shard 3");
  for (const ChildResult& end : ends)
    CHECK_MESSAGE(contains(end.err, "in <module>)\nfleetrun: the last lines of log/workerlog.0 on "),
                  end.err);
  for (const int node : {0, 1}) CHECK(cluster.report(node)["earlier_error"]["rank"] == 1);
}

TEST_CASE(
    "hunt 56: the ranks of a node that have all lost their peer wait for the error of the peer on another node") {
  Cluster cluster(2);
  const char* const script =
      "traceback() { printf 'Traceback (most recent call last):\n  File \"/train.py\", line 3, in <module>\n%s\n' \"$1\"; };"
      "[ $RANK = 1 ] && { : > ../closed; until [ -e ../noticed ]; do sleep 0.01; done; sleep 0.5;"
      "  traceback 'FileNotFoundError: shard 3'; exit 1; };"
      "until [ -e ../closed ]; do sleep 0.01; done;"
      "traceback 'RuntimeError: Connection closed by peer'; : > ../noticed; exit 1";
  cluster.start({"--nproc_per_node=1", "--", "/bin/sh", "-c", script});
  for (const ChildResult& end : cluster.ends()) {
    CHECK(end.code == 1);
    CHECK_MESSAGE(contains(end.err, "fleetrun: FileNotFoundError: shard 3 (/train.py:3, in <module>)\n"),
                  end.err);
  }
  for (const int node : {0, 1}) CHECK(cluster.report(node)["first_failed_rank"] == 1);
}

TEST_CASE("of two ranks that fail one after the other, all nodes name the same one when they start again") {
  for (int i = 0; i < testing::soak_count(5); ++i) {
    Cluster cluster(2);
    // Rank 1 fails, and rank 0 some milliseconds later, as a rank does that loses its peer.
    const char* const script =
        "[ $TORCHELASTIC_RESTART_COUNT = 1 ] && exit 0;"
        "[ $RANK = 1 ] && { echo $$ > ../pid.new; mv ../pid.new ../pid; exit 9; };"
        "while [ ! -e ../pid ] || kill -0 $(cat ../pid) 2>/dev/null; do :; done; exit 1";
    for (const ChildResult& end : cluster.run(
             {"--nproc_per_node=1", "--max_restart=1", "--restart_delay=0.1", "--", "/bin/sh", "-c", script}))
      CHECK_MESSAGE(end.code == 0, end.err);
    const nlohmann::json first = cluster.report(0), second = cluster.report(1);
    const std::string message = first["earlier_attempts"][0]["message"];
    CHECK(second["earlier_attempts"][0]["message"] == message);
    CHECK(contains(first["stand_stills"][0]["why"].dump(), message));
    CHECK(first["earlier_attempts"][0]["exit_code"] == second["earlier_attempts"][0]["exit_code"]);
  }
}

// Of /proc/uptime, which shows the clock of the namespace.
bool clocks_can_differ() {
  const ChildResult result =
      run_child({"/usr/bin/unshare", "-T", "--boottime", "360000", "/bin/cat", "/proc/uptime"});
  return result.code == 0 && std::stod(result.out) - std::stod(read_all("/proc/uptime")) > 300000;
}

TEST_CASE("the first is named also where the clocks of the nodes are hours apart") {
  if (!is_root() || !clocks_can_differ()) LEAVE_OUT("clocks of their own need root and time namespaces");
  for (const std::string hours : {"36000", "360000"})
    for (const int first : {0, 2}) {
      Cluster cluster(2);
      for (const int node : {0, 1})
        cluster.start_after(node, {"/usr/bin/unshare", "-T", "--monotonic", node == 0 ? "360000" : hours});
      check_order(cluster, first, 2 - first);
    }
}

struct Stop {
  int signal, code;
  std::string name;
};

TEST_CASE("a signal to one node ends the ranks of all") {
  for (const Stop& stop : {Stop{SIGTERM, 143, "SIGTERM (15)"}, Stop{SIGINT, 130, "SIGINT (2)"}})
    for (const int node : {0, 1}) {
      CAPTURE(stop.name);
      CAPTURE(node);
      Cluster cluster(2);
      cluster.start({"--nproc_per_node=2", FAKE_WORKER, "pid", cluster.shared() / "%r", "sleep", "100"});
      for (const char* rank : {"0", "1", "2", "3"}) cluster.pid_in(rank);
      cluster.send(node, stop.signal);
      for (const ChildResult& end : cluster.ends()) {
        CHECK(end.code == stop.code);
        CHECK_MESSAGE(contains(end.err, "fleetrun: stopped by " + stop.name + " on node " +
                                            std::to_string(node) + " (" + cluster.address(node)),
                      end.err);
      }
      for (const int each : {0, 1})
        CHECK(cluster.end_in_report(each) == "stopped by " + std::to_string(stop.signal));
      CHECK(cluster.nothing_left());
    }
}

constexpr std::chrono::milliseconds kSameSignal = 1s;  // within it the same signal from kill(2) counts once

// Ranks that do not end by themselves when they are asked to.
void start_stubborn(Cluster& cluster) {
  cluster.start({"--nproc_per_node=2", "--grace=50", FAKE_WORKER, "ignore-term", "pid",
                 cluster.shared() / "%r", "sleep", "100"});
  for (const char* rank : {"0", "1", "2", "3"}) cluster.pid_in(rank);
}

TEST_CASE("a second Ctrl-C on one node kills the ranks of all at once") {
  for (const int node : {0, 1}) {
    CAPTURE(node);
    Cluster cluster(2);
    start_stubborn(cluster);
    cluster.send(node, SIGINT);
    REQUIRE(cluster.says(node, "waiting for the ranks to end; Ctrl-C kills them now"));
    CHECK_FALSE(comes_true([&] { return !is_alive(cluster.pid_in("0")); }, kSameSignal + 100ms));
    cluster.send(node, SIGINT);
    for (const ChildResult& end : cluster.ends(10s)) CHECK_MESSAGE(end.code == 130, end.err);
    CHECK(cluster.nothing_left());
  }
}

TEST_CASE(
    "hunt 13: on a node without running ranks, Ctrl-C says that a second one kills the ranks of other nodes") {
  Cluster cluster(2);
  const std::string shared = cluster.shared().path();
  cluster.start({"--nproc_per_node=1", "--grace=50", "--", "/bin/sh", "-c",
                 "echo $$ > " + shared + "/pid.$RANK; trap ': > " + shared + "/asked' TERM; : > " + shared +
                     "/ready.$RANK; "
                     "while [ $RANK = 0 ] || [ ! -e " +
                     shared + "/ready.0 ]; do sleep 0.05; done; exit 3"});
  REQUIRE(comes_true([&] { return cluster.shared().has("asked"); }, within(20s)));
  cluster.send(1, SIGINT);
  REQUIRE(cluster.says(
      1,
      "rank 1 exited with code 3, waiting for the ranks of the other nodes to end; Ctrl-C kills them now"));
  CHECK_FALSE(comes_true([&] { return !is_alive(cluster.pid_in("pid.0")); }, kSameSignal + 100ms));
  cluster.send(1, SIGINT);
  for (const ChildResult& end : cluster.ends(10s)) CHECK_MESSAGE(end.code == 3, end.err);
  CHECK(cluster.nothing_left());
}

TEST_CASE(
    "hunt 9: SIGINT to both nodes, one after the other, is one Ctrl-C, and another one kills all ranks") {
  Cluster cluster(2);
  const std::string shared = cluster.shared().path();
  cluster.start({"--nproc_per_node=1", "--grace=50", "--", "/bin/sh", "-c",
                 "trap ': > " + shared + "/asked.$RANK' INT; echo $$ > " + shared + "/pid.$RANK; : > " +
                     shared + "/ready.$RANK; while :; do sleep 0.05; done"});
  const auto all_have = [&](const std::string& name) {
    return comes_true([&] { return cluster.shared().has(name + ".0") && cluster.shared().has(name + ".1"); },
                      within(10s));
  };
  REQUIRE(all_have("ready"));
  cluster.send(0, SIGINT);
  REQUIRE(all_have("asked"));
  cluster.send(1, SIGINT);
  const auto any_ended = [&] {
    return !is_alive(cluster.pid_in("pid.0")) || !is_alive(cluster.pid_in("pid.1"));
  };
  CHECK_FALSE(comes_true(any_ended, kSameSignal + 100ms));
  cluster.send(1, SIGINT);
  for (const ChildResult& end : cluster.ends(10s)) {
    CHECK(end.code == 130);
    CHECK_MESSAGE(contains(end.err, "fleetrun: stopped by SIGINT (2) on node 0"), end.err);
  }
  CHECK(cluster.nothing_left());
}

TEST_CASE("--timeout ends all nodes with 124") {
  Cluster cluster(2);
  for (const ChildResult& end :
       cluster.run({"--nproc_per_node=2", "--timeout=1", FAKE_WORKER, "sleep", "100"})) {
    CHECK(end.code == 124);
    CHECK_MESSAGE(contains(end.err, "fleetrun: --timeout: 1 s have passed\n"), end.err);
  }
  CHECK(cluster.nothing_left());
}

TEST_CASE("Ctrl-C on a node whose ranks have finished stops the others, and is the cause") {
  Cluster cluster(2);
  cluster.start({"--nproc_per_node=1", "--", "/bin/sh", "-c",
                 "[ $RANK = 1 ] && sleep=100; exec " + std::string(FAKE_WORKER) + " pid " +
                     (cluster.shared() / "%r") + " sleep ${sleep:-0}"});
  cluster.pid_in("1");
  const pid_t finished = cluster.pid_in("0");
  REQUIRE(comes_true([&] { return state_of(finished) == 'Z'; }, within(10s)));
  cluster.send(0, SIGINT);
  for (const ChildResult& end : cluster.ends()) {
    CHECK(end.code == 130);
    CHECK_MESSAGE(contains(end.err, "fleetrun: stopped by SIGINT (2) on node 0"), end.err);
  }
}

TEST_CASE("Ctrl-C while the ranks are already stopped does not hide why") {
  Cluster cluster(2);
  cluster.start({"--nproc_per_node=1", "--grace=50", "--", "/bin/sh", "-c",
                 "[ $RANK = 0 ] && { " + std::string(FAKE_WORKER) + " await " + (cluster.shared() / "1") +
                     "; exit 3; }; exec " + FAKE_WORKER + " ignore-term pid " + (cluster.shared() / "%r") +
                     " sleep 100"});
  REQUIRE(comes_true([&] { return contains(cluster.errors(0), "rank=[0] was aborted"); }, within(10s)));
  cluster.send(0, SIGINT);
  CHECK_FALSE(comes_true([&] { return !is_alive(cluster.pid_in("1")); }, kSameSignal + 100ms));
  cluster.send(0, SIGINT);
  for (const ChildResult& end : cluster.ends(20s)) {
    CHECK(end.code == 3);
    CHECK_MESSAGE(cause_on(end).starts_with("fleetrun: rank 0 exited with code 3"), end.err);
  }
}

// Rank 1 fails in the first attempt. The others take their time until the file `go` is there, and node 0 is lost meanwhile.
void fail_and_lose_first(Cluster& cluster, const std::vector<std::string>& flags, const std::string& how) {
  const std::string go = cluster.shared() / "go", up = cluster.shared() / "up";
  const std::string script = "[ -e " + go + " ] && exit 0; trap 'echo saves; until [ -e " + go +
                             " ]; do sleep 0.05; done; exit 0' TERM; echo up; : > " + up +
                             ".$RANK; [ $RANK = 1 ] && { until [ -e " + up + ".0 ] && [ -e " + up +
                             ".2 ]; do sleep 0.05; done; " + how + "; }; while :; do sleep 0.05; done";
  std::vector<std::string> words = flags;
  for (const std::string& word : {std::string("--grace=60"), std::string("--nproc_per_node=1"),
                                  std::string("--"), std::string("/bin/sh"), std::string("-c"), script})
    words.push_back(word);
  cluster.start(words);
  for (const int node : {0, 2})
    REQUIRE_MESSAGE(comes_true([&] { return contains(cluster.log(node, 0), "saves\n"); }, within(30s)),
                    cluster.errors(node));
  // Node 0 asks node 1 for a log, so node 1 hears node 0 after the failure.
  const ChildResult logs =
      run_child({FLEETRUN_BINARY, "logs", "--rank=1"},
                {.folder = cluster.folder(0), .environment = {{"HOME", cluster.home()}}});
  REQUIRE_MESSAGE(contains(logs.out, "up\n"), logs.err);
  cluster.kill(0);
  cluster.shared().write("go", "");
}

TEST_CASE("hunt 116: a failure stays the cause if the first node is lost while the ranks end") {
  Cluster cluster(3);
  fail_and_lose_first(cluster, {}, "echo NaN; exit 80");
  for (const int node : {1, 2}) {
    const ChildResult end = cluster.end_of(node);
    CHECK_MESSAGE(end.code == 80, end.err);
    CHECK_MESSAGE(contains(cause_on(end), "fleetrun: rank 1 exited with code 80"), end.err);
    CHECK_MESSAGE(contains(end.err, "fleetrun: then lost node 0 (127.0.0.1"), end.err);
    if (node == 1) CHECK_MESSAGE(contains(end.err, "    NaN\n"), end.err);  // the end of the log
    const nlohmann::json report = cluster.report(node);
    CHECK(report["cause"] == "exited");
    CHECK(report["exit_code"] == 80);
    CHECK(report["first_failed_rank"] == 1);
  }
}

TEST_CASE("hunt 116: an elastic run that goes on without its first node tells what had failed before") {
  Cluster cluster(3);
  fail_and_lose_first(cluster, {"--nnodes=2:3", "--max_restart=3", "--elastic_timeout=2"}, "exit 3");
  for (const int node : {1, 2}) {
    const ChildResult end = cluster.end_of(node);
    CHECK_MESSAGE(end.code == 0, end.err);
    const auto message = cluster.report(node)["earlier_attempts"][0]["message"].get<std::string>();
    CHECK_MESSAGE(message.starts_with("rank 1 exited with code 3"), message);
    CHECK_MESSAGE(contains(end.err, "rank 1 exited with code 3"), end.err);
  }
}

}  // namespace
}  // namespace fleetrun::first_cause_test
