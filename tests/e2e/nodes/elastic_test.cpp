// Elastic runs (--nnodes=MIN:MAX): the others go on without a lost node, and take in nodes that come.
#include "e2e/nodes/cluster.h"

namespace fleetrun::elastic_test {
namespace {

// Each rank writes its numbers into its log, and works until the file "go" exists. The file "fail" ends the first attempt.
const char* const kScript =
    "echo attempt $TORCHELASTIC_RESTART_COUNT of $TORCHELASTIC_MAX_RESTARTS, rank $RANK of $WORLD_SIZE, "
    "node $GROUP_RANK of $GROUP_WORLD_SIZE, paddle $PADDLE_TRAINER_ID of $PADDLE_TRAINERS_NUM; "
    "touch $SHARED/$TORCHELASTIC_RESTART_COUNT.$WORLD_SIZE.$RANK; "
    "while [ ! -e $SHARED/go ]; do sleep 0.05; "
    "[ $TORCHELASTIC_RESTART_COUNT$([ -e $SHARED/fail ] && echo f) != 0f ] || exit 3; done";

void start(Cluster& cluster, int node, const Words& more) {
  cluster.set(node, "SHARED", cluster.shared() / "");
  Words words = more;
  for (const char* word : {"--nproc_per_node=2", "--", "/bin/sh", "-c", kScript}) words.emplace_back(word);
  cluster.start(node, words);
}

void start(Cluster& cluster, const Words& more) {
  for (int node = 0; node < cluster.nodes(); ++node) start(cluster, node, more);
}

bool all_run(const Cluster& cluster, int restarts, int world,
             std::chrono::milliseconds limit = Cluster::kLimit) {
  const bool run = comes_true(
      [&] {
        for (int rank = 0; rank < world; ++rank)
          if (!cluster.shared().has(std::to_string(restarts) + "." + std::to_string(world) + "." +
                                    std::to_string(rank)))
            return false;
        return true;
      },
      within(limit));
  for (int node = 0; node < cluster.nodes() && !run; ++node)
    MESSAGE("node " << node << " says:\n" << cluster.errors(node));
  return run;
}

void finish(Cluster& cluster, const std::vector<int>& nodes) {
  cluster.shared().write("go", "");
  for (const int node : nodes) {
    const ChildResult end = cluster.end_of(node);
    CHECK_MESSAGE(end.code == 0, end.err);
  }
  CHECK(cluster.nothing_left());
}

TEST_CASE("when all processes of a node are killed, the others go on with new numbers and end with 0") {
  for (const int lost : {1, 2}) {
    CAPTURE(lost);
    Cluster cluster(3);
    start(cluster, {"--nnodes=2:3"});
    REQUIRE(all_run(cluster, 0, 6));
    cluster.kill(lost);
    REQUIRE(all_run(cluster, 1, 4));
    finish(cluster, {0, 3 - lost});
    CHECK(cluster.end_of(lost).code == 137);
    CHECK(cluster.log(0, 1) == "attempt 1 of 3, rank 1 of 4, node 0 of 2, paddle 1 of 4\n");
    CHECK(cluster.log(3 - lost, 0) == "attempt 1 of 3, rank 2 of 4, node 1 of 2, paddle 2 of 4\n");
    CHECK(contains(cluster.errors(3 - lost), "fleetrun: restart 1 of at most 3 in 0 s"));
    CHECK(contains(cluster.errors(3 - lost),
                   "fleetrun: the run goes on with 2 nodes and 4 ranks; this is node 1 with ranks 2-3\n"));
    const auto report = cluster.report(0);
    CHECK(report["cause"] == "finished");
    CHECK(report["ranks"].size() == 4);
    REQUIRE(report["stand_stills"].size() == 1);
    CHECK(report["stand_stills"][0]["attempt"] == 1);
    CHECK(report["stand_stills"][0]["nodes"] == 2);
    CHECK(report["stand_stills"][0]["seconds"] < 5);
  }
}

TEST_CASE(
    "a node that is killed in the pause before a restart costs a restart of its own, and the others say so") {
  Cluster cluster(3);
  start(cluster, {"--nnodes=2:3", "--restart_delay=20"});
  REQUIRE(all_run(cluster, 0, 6));
  cluster.shared().write("fail", "");
  for (const int node : {0, 1, 2}) REQUIRE(cluster.says(node, "restart 1 of at most 3 in 20 s"));
  cluster.kill(2);
  REQUIRE(all_run(cluster, 2, 4));
  finish(cluster, {0, 1});
  for (const int node : {0, 1}) {
    CHECK(contains(cluster.errors(node), "fleetrun: lost node 2 (127.0.0.3"));
    CHECK(contains(cluster.errors(node), "; the ranks had not started yet; restart 2 of at most 3\n"));
  }
  const auto report = cluster.report(0);
  REQUIRE(report["stand_stills"].size() == 1);
  CHECK(report["stand_stills"][0]["attempt"] == 2);
  CHECK(report["stand_stills"][0]["nodes"] == 2);
}

TEST_CASE("ports that the user named are held again when a node is lost before the ranks start again") {
  Cluster cluster(2);
  const int port = free_port();
  for (const int node : {0, 1})
    start(cluster, node,
          {"--nnodes=1:2", "--restart_delay=20", "--start_port=" + std::to_string(port + 3 * node)});
  REQUIRE(all_run(cluster, 0, 4));
  cluster.shared().write("fail", "");
  for (const int node : {0, 1}) REQUIRE(cluster.says(node, "restart 1 of at most 3 in 20 s"));
  cluster.kill(1);
  REQUIRE(all_run(cluster, 2, 2));
  finish(cluster, {0});
}

TEST_CASE(
    "hunt: a node that is lost in the pause before the last restart ends the run, which says that none is left") {
  Cluster cluster(3);
  start(cluster, {"--nnodes=2:3", "--max_restart=1", "--restart_delay=50"});
  REQUIRE(all_run(cluster, 0, 6));
  cluster.shared().write("fail", "");
  for (const int node : {0, 1}) REQUIRE(cluster.says(node, "restart 1 of at most 1 in 50 s"));
  cluster.kill(2);
  for (const int node : {0, 1}) {
    const ChildResult end = cluster.end_of(node);
    CHECK_MESSAGE(end.code == 75, end.err);
    CHECK_MESSAGE(contains(end.err, "  hint: no restart is left (--max_restart=1)\n"), end.err);
  }
}

TEST_CASE("a run begins without a node that does not come, and takes it in when it does") {
  Cluster cluster(2);
  start(cluster, 0, {"--nnodes=1:2", "--elastic_timeout=0.2"});
  REQUIRE(all_run(cluster, 0, 2));
  start(cluster, 1, {"--nnodes=1:2", "--elastic_timeout=0.2"});
  REQUIRE(all_run(cluster, 0, 4));
  finish(cluster, {0, 1});
  CHECK(cluster.log(1, 1) == "attempt 0 of 3, rank 3 of 4, node 1 of 2, paddle 3 of 4\n");
  CHECK(contains(cluster.errors(0),
                 "fleetrun: the ranks start again with other nodes; the logs before it are in "
                 "log/attempt-0/\n"));
  CHECK(cluster.report(1)["ranks"][0]["rank"] == 2);
}

TEST_CASE("a node that was killed and starts again gets its number back") {
  Cluster cluster(3);
  start(cluster, {"--nnodes=2:3"});
  REQUIRE(all_run(cluster, 0, 6));
  cluster.kill(1);
  REQUIRE(all_run(cluster, 1, 4));
  start(cluster, 1, {"--nnodes=2:3", "--log_dir=again"});
  REQUIRE(all_run(cluster, 1, 6));
  finish(cluster, {0, 1, 2});
  CHECK(cluster.read(1, "again/workerlog.0") == "attempt 1 of 3, rank 2 of 6, node 1 of 3, paddle 2 of 6\n");
}

TEST_CASE("a spare node stands by, takes the place of a lost node, and ends with 0 when it was not needed") {
  for (const bool needed : {true, false}) {
    CAPTURE(needed);
    Cluster cluster(3);
    for (const int node : {0, 1}) start(cluster, node, {"--spares=1"});
    REQUIRE(all_run(cluster, 0, 4));
    start(cluster, 2, {"--spares=1"});
    REQUIRE(cluster.says(2, "joined a run that has its 2 nodes; this node waits until a node is lost"));
    if (needed) {
      cluster.kill(1);
      REQUIRE(all_run(cluster, 1, 4));
      finish(cluster, {0, 2});
    } else {
      finish(cluster, {0, 1, 2});
      CHECK(contains(cluster.errors(2), "the run is over; it did not need this node"));
      CHECK(cluster.report(2)["exit_code"] == 0);
    }
  }
}

TEST_CASE("when fewer nodes than MIN are left and none comes, the run ends with 75 and says so") {
  Cluster cluster(2);
  for (const int node : {0, 1}) {
    cluster.set(node, "SHARED", cluster.shared() / "");
    cluster.start_exactly(node,
                          {"--nnodes=2:3", "--node_rank=" + std::to_string(node),
                           "--master=127.0.0.1:" + std::to_string(cluster.port()), "--elastic_timeout=1",
                           "--nproc_per_node=2", "--", "/bin/sh", "-c", kScript});
  }
  REQUIRE(all_run(cluster, 0, 4));
  cluster.kill(1);
  const ChildResult end = cluster.end_of(0);
  CHECK(end.code == 75);
  CHECK_MESSAGE(contains(end.err, "; waiting 1 s for 1 node to join (--elastic_timeout)"), end.err);
  CHECK_MESSAGE(contains(end.err, "fleetrun: 1 node is left, and the run needs 2 (--nnodes)"), end.err);
}

TEST_CASE("when the first node of two is lost, the report of the other one says how its ranks ended") {
  Cluster cluster(2);
  start(cluster, {"--nnodes=1:2", "--elastic_timeout=1"});
  REQUIRE(all_run(cluster, 0, 4));
  cluster.kill(0);
  CHECK(cluster.end_of(1).code == 75);
  const auto report = cluster.report(1);
  CHECK(report["cause"] == "node_lost");
  REQUIRE(report["ranks"].size() == 2);
  CHECK(report["ranks"][0]["rank"] == 2);
  CHECK(report["ranks"][0]["signal"] == SIGTERM);
}

TEST_CASE("a node without a network is lost after 4 s; it ends its own ranks, and the others go on") {
  if (const auto missing = Namespaces::missing()) LEAVE_OUT(*missing);
  const Namespaces network(3);
  Cluster cluster(3, &network);
  start(cluster, {"--nnodes=2:3", "--grace=1"});
  REQUIRE(all_run(cluster, 0, 6));
  network.pull_cable(2);
  REQUIRE(all_run(cluster, 1, 4, 8s));
  CHECK(cluster.end_of(2, 8s).code == 75);
  CHECK(cluster.left_on(2).empty());
  finish(cluster, {0, 1});
  const double detection = cluster.report(0)["stand_stills"][0]["detection_s"];
  CHECK(detection < 6);
}

}  // namespace
}  // namespace fleetrun::elastic_test
