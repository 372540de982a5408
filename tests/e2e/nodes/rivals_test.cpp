// Two hosts that both wait as the first node: of one run, which is a mistake, and of two runs, which is none.
#include "e2e/nodes/cluster.h"

namespace fleetrun::rivals_test {
namespace {

TEST_CASE("hunt 47: two hosts of which each lists itself first notice each other, and both end with 76") {
  if (const auto what = Namespaces::missing()) LEAVE_OUT(*what);
  const Namespaces network(2);
  for (const char* nodes : {"--nnodes=2", "--nnodes=1:2"}) {
    CAPTURE(std::string(nodes));
    Cluster cluster(2, &network);
    const std::string first = cluster.address(0), second = cluster.address(1);
    cluster.start_exactly(0, {"--ips=" + first + "," + second, nodes, "--insecure", FAKE_WORKER});
    cluster.start_exactly(1, {"--ips=" + second + "," + first, nodes, "--insecure", FAKE_WORKER});
    for (const ChildResult& end : cluster.ends()) {
      CHECK_MESSAGE(end.code == 76, end.err);
      CHECK_MESSAGE(contains(end.err, " waits as node 0, and so does this node ("), end.err);
      CHECK(end.seconds < seconds_within(20s));  // --join_timeout is 600 s
    }
  }
}

TEST_CASE(
    "hunt 50: two runs of one user whose first nodes are the second ones of each other do not disturb each other") {
  if (const auto what = Namespaces::missing()) LEAVE_OUT(*what);
  const Namespaces network(2);
  Cluster cluster(2, &network), opposite(2, &network);
  const auto start = [](Cluster& run, int first, int node, const char* code) {
    const std::string ips = "--ips=" + run.address(first) + "," + run.address(1 - first);
    run.start_exactly(node, {ips, "--insecure", FAKE_WORKER, "exit", code});
  };
  start(cluster, 0, 0, "0");
  start(opposite, 1, 1, "4");
  // As long as a first node waits before it takes another one for a rival.
  CHECK_FALSE(
      comes_true([&] { return contains(cluster.errors(0) + opposite.errors(1), "waits as node 0"); }, 3s));
  start(cluster, 0, 1, "0");
  start(opposite, 1, 0, "4");
  for (const ChildResult& end : cluster.ends()) CHECK_MESSAGE(end.code == 0, end.err);
  for (const ChildResult& end : opposite.ends()) CHECK_MESSAGE(end.code == 4, end.err);
}

}  // namespace
}  // namespace fleetrun::rivals_test
