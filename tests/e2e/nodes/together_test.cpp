// What the nodes of a run do together while it goes on: they judge a hang, wait, stop and continue as one.
#include "e2e/nodes/cluster.h"

namespace fleetrun::together_test {
namespace {

// How many times the text is there.
int count(const std::string& text, const std::string& part) {
  int times = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++times;
  return times;
}

TEST_CASE("silent ranks of one node are no hang while a rank of another node works") {
  Cluster cluster(2);
  const std::string script =
      "[ $RANK -gt 1 ] && exec sleep 4; for i in 1 2 3 4 5 6 7 8; do echo works; sleep 0.4; done; exec sleep 0.8";
  for (const ChildResult& end :
       cluster.run({"--nproc_per_node=2", "--hang_timeout=1.5", "--", "/bin/sh", "-c", script}))
    CHECK_MESSAGE(end.code == 0, end.err);
}

TEST_CASE("hunt: a process of a finished rank goes on while ranks of other nodes run, and its work counts") {
  Cluster cluster(2);
  cluster.shared().write("busy.sh",
                         "end=$(($(date +%s) + 3))\nwhile [ $(date +%s) -lt $end ]; do :; done\n"
                         "echo done > ../answer\nexec sleep 100\n");
  const char* const script =
      "[ $RANK = 1 ] && { setsid -f /bin/sh ../busy.sh; exit 0; }; mkfifo ../answer.new; mv ../answer.new ../answer;"
      "read line < ../answer; echo $line";
  for (const ChildResult& end :
       cluster.run({"--nproc_per_node=1", "--hang_timeout=1", "--grace=0.1", "--", "/bin/sh", "-c", script}))
    CHECK_MESSAGE(end.code == 0, end.err);
  CHECK(cluster.log(0, 0) == "done\n");
  CHECK(cluster.nothing_left());
}

TEST_CASE("a run that hangs on all nodes ends with 75, and the first node shows what all ranks did") {
  Cluster cluster(2);
  const auto ends = cluster.run({"--nproc_per_node=2", "--hang_timeout=1.5", FAKE_WORKER, "sleep", "100"});
  for (const ChildResult& end : ends) {
    CHECK(end.code == 75);
    CHECK_MESSAGE(count(end.err, "fleetrun: no rank writes anything or works for 1.5 s\n") == 1, end.err);
    CHECK_MESSAGE(contains(end.err, "what the ranks are doing:"), end.err);
  }
  CHECK_MESSAGE(contains(ends[0].err, "fleetrun: what the ranks of all nodes were doing:\n    rank 0"),
                ends[0].err);
  const auto report = cluster.report(0);
  CHECK(report["cause"] == "hung");
  const std::string roll = report["roll_call"].dump();
  for (const char* rank : {"rank 0", "rank 1", "rank 2", "rank 3"}) CHECK_MESSAGE(contains(roll, rank), roll);
  CHECK(cluster.nothing_left());
}

TEST_CASE("--log_rule: a line on any node is enough, and none on all of them ends the run") {
  Cluster cluster(2);
  const std::string script =
      "[ $RANK = 1 ] && for i in 1 2 3 4 5 6; do echo step $i; sleep 0.4; done; exec sleep 100";
  for (const ChildResult& end :
       cluster.run({"--nproc_per_node=1", "--log_rule=step within 1.5s", "--", "/bin/sh", "-c", script})) {
    CHECK(end.code == 75);
    CHECK_MESSAGE(contains(end.err, "no line of any rank obeys --log_rule"), end.err);
  }
  CHECK(contains(cluster.log(1, 0), "step 6\n"));
  CHECK(cluster.nothing_left());
}

TEST_CASE(
    "hunt 104: --env names a rank of a node that has more ranks than this one, and none that no node has") {
  Cluster cluster(2);
  const auto start = [&](const std::string& variable) {
    for (const int node : {0, 1})
      cluster.start(node, {"--nproc_per_node=" + std::to_string(node + 1), "--env=" + variable, "--",
                           "/bin/sh", "-c", "echo $RANK has ${LR-none}"});
    return cluster.ends();
  };
  for (const ChildResult& end : start("2:LR=0.1")) CHECK_MESSAGE(end.code == 0, end.err);
  CHECK(cluster.log(0, 0) == "0 has none\n");
  CHECK(cluster.log(1, 1) == "2 has 0.1\n");
  for (const ChildResult& end : start("3:LR=0.1")) {
    CHECK(end.code == 2);
    CHECK_MESSAGE(contains(end.err, "--env names rank 3, the run has 3 ranks"), end.err);
  }
}

TEST_CASE("--early_exit_wait: a rank that finishes on one node starts the clock of all nodes") {
  Cluster cluster(2);
  const auto ends = cluster.run({"--nproc_per_node=1", "--early_exit_wait=1", "--", "/bin/sh", "-c",
                                 "[ $RANK = 0 ] && exit 0; exec sleep 100"});
  for (const ChildResult& end : ends) {
    CHECK(end.code == 75);
    CHECK_MESSAGE(contains(end.err, "fleetrun: rank 0 finished 1 s ago and others still run\n"), end.err);
  }
  CHECK(cluster.report(0)["cause"] == "early_exit");
}

TEST_CASE(
    "Ctrl-Z on one node suspends the ranks of all nodes, and SIGCONT lets them go on; no clock runs meanwhile") {
  Cluster cluster(2);
  cluster.start({"--nproc_per_node=1", "--hang_timeout=1.5", "--timeout=20", FAKE_WORKER, "pid",
                 cluster.shared() / "%r", "await", cluster.shared() / "go", "exit", "0"});
  const pid_t here = cluster.pid_in("0"), there = cluster.pid_in("1");
  cluster.send(1, SIGTSTP);
  REQUIRE(comes_true([&] { return state_of(here) == 'T' && state_of(there) == 'T'; }, within(5s)));
  CHECK(state_of(cluster.front(1)) == 'T');
  CHECK(state_of(cluster.front(0)) != 'T');  // nobody pressed a key there
  CHECK(cluster.says(0, "fleetrun: another node was suspended, so the ranks here are suspended, too", 5s));
  CHECK_FALSE(comes_true([&] { return state_of(here) != 'T'; }, 2500ms));  // longer than the hang's time
  cluster.shared().write("go", "");
  cluster.send(1, SIGCONT);
  for (const ChildResult& end : cluster.ends()) CHECK_MESSAGE(end.code == 0, end.err);
}

TEST_CASE("Ctrl-Z while a node waits for others to join: no rank of any node starts until SIGCONT") {
  Cluster cluster(2);
  const auto has_begun = [&] { return cluster.shared().has("0") || cluster.shared().has("1"); };
  const Words words = {"--nproc_per_node=1", FAKE_WORKER, "pid", cluster.shared() / "%r", "exit", "0"};
  cluster.start(0, words);
  REQUIRE(comes_true([&] { return std::filesystem::exists(cluster.folder(0) + "/log"); }, 20s));
  cluster.send(0, SIGTSTP);
  REQUIRE(comes_true([&] { return state_of(cluster.front(0)) == 'T'; }, 20s));
  cluster.start(1, words);
  CHECK_FALSE(comes_true(has_begun, 2500ms));
  cluster.send(0, SIGCONT);
  for (const ChildResult& end : cluster.ends()) CHECK_MESSAGE(end.code == 0, end.err);
  CHECK(has_begun());
}

TEST_CASE(
    "SIGUSR1 to fleetrun on one node reaches the ranks of all nodes, and Ctrl-\\ calls the roll of all") {
  Cluster cluster(2);
  cluster.start({"--nproc_per_node=1", FAKE_WORKER, "on-usr1", "heard\n", "pid", cluster.shared() / "%r",
                 "await", cluster.shared() / "go"});
  cluster.pid_in("0");
  cluster.pid_in("1");
  cluster.send(0, SIGUSR1);
  for (const int node : {0, 1})
    CHECK(comes_true([&] { return contains(cluster.log(node, 0), "heard"); }, within(5s)));
  cluster.send(1, SIGQUIT);
  for (const int node : {0, 1}) CHECK(cluster.says(node, "what the ranks are doing:", 5s));
  cluster.shared().write("go", "");
  for (const ChildResult& end : cluster.ends()) CHECK_MESSAGE(end.code == 0, end.err);
}

}  // namespace
}  // namespace fleetrun::together_test
