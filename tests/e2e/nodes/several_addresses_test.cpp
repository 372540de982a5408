// Names of nodes with several addresses, of which each host sees others, or the same ones in another order.
#include <thread>

#include "e2e/nodes/cluster.h"

namespace fleetrun::several_addresses_test {
namespace {

// The first node listens at 10.77.0.11. For the other node, the name `first` has this address and two more. It tries them in this order:
// 10.77.0.3, 10.77.0.1, 10.77.0.11, because the resolver sorts those first that are nearest to its own address, 10.77.0.2.
class ThreeAddresses : public Cluster {
 public:
  explicit ThreeAddresses(const Namespaces& network) : Cluster(2, &network) {
    add_to_first(network, "10.77.0.11");
    set_hosts(0, "10.77.0.11 first\n10.77.0.2 second\n");
    set_hosts(1, "10.77.0.3 first\n10.77.0.1 first\n10.77.0.11 first\n10.77.0.2 second\n");
  }

  static void add_to_first(const Namespaces& network, const std::string& address) {
    const Words add = {"/bin/sh", "-c",
                       "PATH=$PATH:/usr/sbin:/sbin; ip address add " + address + "/24 dev eth0"};
    REQUIRE(run_child(network.in(0, add)).code == 0);
  }
};

std::optional<std::string> missing() {
  if (auto network = Namespaces::missing()) return network;
  if (!can_mount()) return "another /etc/hosts needs mount namespaces";
  return std::nullopt;
}

void train(ThreeAddresses& cluster, const Words& place) {
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
  ThreeAddresses cluster(network);
  train(cluster, {"--ips=first,second"});
}

TEST_CASE("hunt 92: nodes find the first one by --master at any address of its name") {
  if (const auto what = missing()) LEAVE_OUT(*what);
  const Namespaces network(2);
  ThreeAddresses cluster(network);
  train(cluster, {"--master=first:7000", "--nnodes=2"});
}

TEST_CASE("another program at one address of the first node's name is passed over") {
  if (const auto what = missing()) LEAVE_OUT(*what);
  const Namespaces network(2);
  ThreeAddresses cluster(network);
  ThreeAddresses::add_to_first(network, "10.77.0.3");
  UniqueFd listener;
  network.run_in(0, [&] { listener = listen_at("10.77.0.3", 7000); });
  std::thread server([&] {
    const UniqueFd client(::accept(listener.get(), nullptr, nullptr));
    ::send(client.get(), "HTTP/1.1 400 Bad Request\r\n\r\n", 28, MSG_NOSIGNAL);
  });
  train(cluster, {"--master=first:7000", "--nnodes=2"});
  server.join();
}

TEST_CASE("hunt 92: who waits for a first node whose name has several addresses names all of them") {
  if (const auto what = missing()) LEAVE_OUT(*what);
  const Namespaces network(2);
  ThreeAddresses cluster(network);
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
