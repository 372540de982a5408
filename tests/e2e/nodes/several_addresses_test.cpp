// Names of nodes with several addresses, of which each host sees others, or the same ones in another order.
#include "e2e/nodes/cluster.h"

namespace fleetrun::several_addresses_test {
namespace {

// The first node has two addresses and listens at 10.77.0.11. The other node tries one of no host, then the first node's
// other one, then this one: the resolver sorts those first that are nearest to its own.
class TwoAddresses : public Cluster {
 public:
  explicit TwoAddresses(const Namespaces& network) : Cluster(2, &network) {
    const Words add = {"/bin/sh", "-c", "PATH=$PATH:/usr/sbin:/sbin; ip address add 10.77.0.11/24 dev eth0"};
    REQUIRE(run_child(network.in(0, add)).code == 0);
    set_hosts(0, "10.77.0.11 first\n10.77.0.1 first\n10.77.0.2 second\n");
    set_hosts(1, "10.77.0.3 first\n10.77.0.1 first\n10.77.0.11 first\n10.77.0.2 second\n");
  }
};

std::optional<std::string> missing() {
  if (auto network = Namespaces::missing()) return network;
  if (!can_mount()) return "another /etc/hosts needs mount namespaces";
  return std::nullopt;
}

void train(TwoAddresses& cluster, const Words& place) {
  for (const int node : {0, 1}) {
    std::ofstream(cluster.folder(node) + "/job.json") << kEndlessJob;
    Words words = place;
    words.insert(words.end(),
                 {"--nproc_per_node=1", "--device=cpu", "--join_timeout=30", "job.json", "train.epochs=1"});
    cluster.start_exactly(node, words);
  }
  for (const ChildResult& end : cluster.ends()) CHECK_MESSAGE(end.code == 0, end.err);
  CHECK(cluster.report(0)["ranks"].size() == 2);
}

TEST_CASE("hunt 92: nodes find the first one by --ips at any address of its name, and so do the ranks") {
  if (const auto what = missing()) LEAVE_OUT(*what);
  const Namespaces network(2);
  TwoAddresses cluster(network);
  train(cluster, {"--ips=first,second"});
}

TEST_CASE("hunt 92: nodes find the first one by --master at any address of its name") {
  if (const auto what = missing()) LEAVE_OUT(*what);
  const Namespaces network(2);
  TwoAddresses cluster(network);
  train(cluster, {"--master=first:7000", "--nnodes=2"});
}

TEST_CASE("hunt 92: who waits for a first node whose name has several addresses names all of them") {
  if (const auto what = missing()) LEAVE_OUT(*what);
  const Namespaces network(2);
  TwoAddresses cluster(network);
  cluster.start_exactly(1, {"--master=first:7000", "--nnodes=2", "--join_timeout=3", FAKE_WORKER});
  const ChildResult end = cluster.end_of(1);
  CHECK(end.code == 75);
  CHECK_MESSAGE(contains(end.err,
                         "node 0 (10.77.0.3) at 10.77.0.3:7000 or 10.77.0.1:7000 or 10.77.0.11:7000 did "
                         "not answer in 3 s (--join_timeout): 10.77.0."),
                end.err);
}

}  // namespace
}  // namespace fleetrun::several_addresses_test
