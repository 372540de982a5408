// The name of a node may have several addresses. Each host may see other ones, or the same ones in another order.
#include <poll.h>

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

void start_training(Cluster& cluster, int node, Words words) {
  std::ofstream(cluster.folder(node) + "/job.json") << kEndlessJob;
  words.insert(words.end(), {"--nproc_per_node=1", "--device=cpu", "--join_timeout=30", "--timeout=90",
                             "job.json", "train.epochs=1"});
  cluster.start_exactly(node, words);
}

void check_trained(Cluster& cluster) {
  for (const ChildResult& end : cluster.ends()) CHECK_MESSAGE(end.code == 0, end.err);
  CHECK(cluster.report(0)["ranks"].size() == 2);
}

void train(Cluster& cluster, const Words& place) {
  for (const int node : {0, 1}) start_training(cluster, node, place);
  check_trained(cluster);
}

TEST_CASE("hunt 92: nodes find the first one by --ips at any address of its name, and so do the ranks") {
  if (const auto what = missing()) LEAVE_OUT(*what);
  const Namespaces network(2);
  ThreeAddresses cluster(network);
  train(cluster, {"--ips=first,second"});
}

void run_ip(const Namespaces& network, int node, const std::string& words) {
  const Words command = {"/bin/sh", "-c", "PATH=$PATH:/usr/sbin:/sbin; ip " + words};
  REQUIRE(run_child(network.in(node, command)).code == 0);
}

// Only the node itself knows this address, and no other node reaches it.
void add_own_address(const Namespaces& network, int node, const std::string& address = "10.99.0.1") {
  run_ip(network, node, "address add " + address + "/32 dev lo");
}

// gloo lets the rank with the higher address connect to the other one.
TEST_CASE("hunt 125: ranks meet at an address of the first node that the others reach") {
  if (const auto what = missing()) LEAVE_OUT(*what);
  for (const Words& place : {Words{"--ips=first,second"}, Words{"--nnodes=2", "--master=first:7717"}})
    for (const std::string own : {"10.9.0.1", "10.99.0.1"}) {
      CAPTURE(place.front());
      CAPTURE(own);
      const Namespaces network(2);
      add_own_address(network, 0, own);
      Cluster cluster(2, &network);
      cluster.set_hosts(0, own + " first\n10.77.0.1 first\n10.77.0.2 second\n");
      cluster.set_hosts(1, "10.77.0.1 first\n10.77.0.2 second\n");
      train(cluster, place);
    }
}

TEST_CASE("hunt 125: ranks meet at the one address of the first node that all others reach") {
  if (const auto what = missing()) LEAVE_OUT(*what);
  const Namespaces network(3);
  add_own_address(network, 0);
  for (const int node : {0, 1, 2})
    for (const std::string subnet : {"10.78.0.", "10.79.0."})
      run_ip(network, node, "address add " + subnet + std::to_string(node + 1) + "/24 dev eth0");
  run_ip(network, 1, "route add unreachable 10.77.0.1");
  run_ip(network, 2, "route add blackhole 10.78.0.1");
  Cluster cluster(3, &network);
  const std::string others = "10.77.0.2 second\n10.77.0.3 third\n";
  cluster.set_hosts(0, others + "10.99.0.1 first\n10.77.0.1 first\n10.78.0.1 first\n10.79.0.1 first\n");
  cluster.set_hosts(1, others + "10.78.0.1 first\n");
  cluster.set_hosts(2, others + "10.77.0.1 first\n");
  for (const int node : {0, 1, 2}) start_training(cluster, node, {"--ips=first,second,third"});
  for (const ChildResult& end : cluster.ends()) CHECK_MESSAGE(end.code == 0, end.err);
  CHECK(contains(cluster.log(0, 0), "joined 3 ranks"));
}

// Starts three nodes. The second one is on the host of the first one.
void start_beside_first(Cluster& cluster, const Namespaces& network) {
  const std::string hosts = cluster.folder(1) + "/hosts";
  std::ofstream(hosts) << "10.99.0.1 first\n10.77.0.1 first\n";
  cluster.start_after(1, network.in(0, {"/usr/bin/unshare", "-m", "/bin/sh", "-c",
                                        "mount --bind " + hosts + " /etc/hosts && exec \"$@\"", "sh"}));
  for (const int node : {0, 1, 2})
    start_training(cluster, node,
                   {"--nnodes=3", "--master=first:7717", "--node_rank=" + std::to_string(node)});
}

TEST_CASE("a node on the host of the first one reaches all of its addresses") {
  if (const auto what = missing()) LEAVE_OUT(*what);
  const Namespaces network(3);
  add_own_address(network, 0);
  Cluster cluster(3, &network);
  cluster.set_hosts(0, "10.99.0.1 first\n10.77.0.1 first\n");
  cluster.set_hosts(2, "10.77.0.1 first\n");
  start_beside_first(cluster, network);
  for (const ChildResult& end : cluster.ends()) {
    CHECK_MESSAGE(end.code == 0, end.err);
    CHECK_MESSAGE(!contains(end.err, "the ranks meet at"), end.err);
  }
}

TEST_CASE("nodes on one host say nothing about the addresses of the first one") {
  if (!can_mount()) LEAVE_OUT("another /etc/hosts needs mount namespaces");
  for (const std::string first : {"127.0.0.3", "first"}) {
    CAPTURE(first);
    Cluster cluster(3);
    cluster.set_hosts(0, "127.0.0.2 first\n127.0.0.3 first\n");
    cluster.set_hosts(1, "127.0.0.2 first\n127.0.0.3 first\n");
    cluster.set_hosts(2, "127.0.0.3 first\n127.0.0.2 first\n");
    for (const int node : {0, 1, 2})
      start_training(cluster, node,
                     {"--nnodes=3", "--master=" + first + ":" + std::to_string(cluster.port()),
                      "--node_rank=" + std::to_string(node)});
    for (const ChildResult& end : cluster.ends()) {
      CHECK_MESSAGE(end.code == 0, end.err);
      CHECK_MESSAGE(!contains(end.err, "the ranks meet at"), end.err);
    }
  }
}

TEST_CASE("--host on the first node chooses one of the addresses that --master names") {
  if (const auto what = missing()) LEAVE_OUT(*what);
  const Namespaces network(2);
  ThreeAddresses cluster(network);
  cluster.set_hosts(0, "10.77.0.1 first\n10.77.0.11 first\n");
  cluster.set_hosts(1, "10.77.0.1 first\n10.77.0.11 first\n");
  UniqueFd other_program;
  network.run_in(0, [&] { other_program = listen_at("10.77.0.1", 7717); });
  start_training(cluster, 0, {"--nnodes=2", "--master=first:7717", "--host=10.77.0.11"});
  start_training(cluster, 1, {"--nnodes=2", "--master=first:7717"});
  check_trained(cluster);
}

// The kernel would connect from the first address of the interface.
TEST_CASE("other ranks and scripts learn the address of the first node that --master names") {
  if (const auto what = missing()) LEAVE_OUT(*what);
  const Namespaces network(2);
  ThreeAddresses::add_to_first(network, "10.77.0.11");
  Cluster cluster(2, &network);
  const Words place = {"--master=10.77.0.11:7717", "--nnodes=2"};
  train(cluster, place);
  for (const int node : {0, 1})
    cluster.start_exactly(
        node, {place[0], place[1], "sh", "-c", "echo at $MASTER_ADDR, $PADDLE_TRAINER_ENDPOINTS"});
  for (const ChildResult& end : cluster.ends()) CHECK_MESSAGE(end.code == 0, end.err);
  CHECK(contains(cluster.log(1, 0), "at 10.77.0.11, 10.77.0.11:"));
}

// As on hosts with the bridge of Docker, which has the same address on each.
TEST_CASE("hunt 125: an address that each host has itself is not one of the first node for the others") {
  if (const auto what = missing()) LEAVE_OUT(*what);
  const Namespaces network(2);
  for (const int node : {0, 1}) add_own_address(network, node, "172.17.0.1");
  Cluster cluster(2, &network);
  cluster.set_hosts(0, "172.17.0.1 first\n10.77.0.1 first\n10.77.0.2 second\n");
  cluster.set_hosts(1, "10.77.0.1 first\n10.77.0.2 second\n");
  train(cluster, {"--ips=first,second"});
}

TEST_CASE("hunt 125: the same holds for a node that takes over") {
  if (const auto what = missing()) LEAVE_OUT(*what);
  const Namespaces network(3);
  add_own_address(network, 1);
  Cluster cluster(3, &network);
  const std::string others = "10.77.0.1 first\n10.77.0.3 third\n";
  for (const int node : {0, 2}) cluster.set_hosts(node, others + "10.77.0.2 second\n");
  cluster.set_hosts(1, others + "10.99.0.1 second\n10.77.0.2 second\n");
  for (const int node : {0, 1, 2}) {
    std::ofstream(cluster.folder(node) + "/job.json") << kEndlessJob;
    cluster.start_exactly(node, {"--ips=first,second,third", "--nnodes=2:3", "--nproc_per_node=1",
                                 "--device=cpu", "--grace=1", "job.json"});
  }
  const auto trains = [&] {
    return comes_true([&] { return contains(cluster.log(1, 0), "[Epoch"); }, within(60s));
  };
  REQUIRE(trains());
  cluster.kill(0);
  for (const int node : {1, 2}) REQUIRE(cluster.says(node, "the run goes on with 2 nodes"));
  CHECK(trains());
  cluster.send(1, SIGTERM);
  for (const int node : {1, 2}) CHECK(cluster.end_of(node).code == 143);
}

TEST_CASE("hunt 92: nodes find the first one by --master at any address of its name") {
  if (const auto what = missing()) LEAVE_OUT(*what);
  const Namespaces network(2);
  ThreeAddresses cluster(network);
  train(cluster, {"--master=first:7000", "--nnodes=2"});
}

TEST_CASE("hunt 98: the first node listens at all of its own addresses that its name has") {
  if (const auto what = missing()) LEAVE_OUT(*what);
  for (const Words& place : {Words{"--ips=first,second"}, Words{"--master=first:7000", "--nnodes=2"}}) {
    CAPTURE(place.front());
    const Namespaces network(2);
    ThreeAddresses cluster(network);
    // The other node knows one of them only.
    for (const std::string known : {"10.77.0.1", "10.77.0.11"}) {
      cluster.set_hosts(0, "10.77.0.11 first\n10.77.0.1 first\n10.77.0.2 second\n");
      cluster.set_hosts(1, known + " first\n10.77.0.2 second\n");
      train(cluster, place);
    }
  }
}

TEST_CASE("hunt 98: a node that takes over listens at all of its own addresses") {
  if (const auto what = missing()) LEAVE_OUT(*what);
  for (const std::string known : {"10.77.0.2", "10.77.0.22"}) {
    CAPTURE(known);
    const Namespaces network(3);
    Cluster cluster(3, &network);
    const Words add = {"/bin/sh", "-c", "PATH=$PATH:/usr/sbin:/sbin; ip address add 10.77.0.22/24 dev eth0"};
    REQUIRE(run_child(network.in(1, add)).code == 0);
    const std::string others = "10.77.0.1 first\n10.77.0.3 third\n";
    cluster.set_hosts(0, others + "10.77.0.2 second\n");
    cluster.set_hosts(1, others + "10.77.0.22 second\n10.77.0.2 second\n");
    cluster.set_hosts(2, others + known + " second\n");
    for (const int node : {0, 1, 2})
      cluster.start_exactly(node,
                            {"--ips=first,second,third", "--nnodes=2:3", FAKE_WORKER, "await", "../go"});
    for (const int node : {0, 1, 2}) REQUIRE(cluster.says(node, "log/"));
    cluster.kill(0);
    REQUIRE(cluster.says(2, "the run goes on with 2 nodes"));
    cluster.shared().write("go", "");
    for (const int node : {1, 2}) CHECK(cluster.end_of(node).code == 0);
  }
}

TEST_CASE("another program at one address of the first node's name is passed over") {
  if (const auto what = missing()) LEAVE_OUT(*what);
  const Namespaces network(2);
  ThreeAddresses cluster(network);
  ThreeAddresses::add_to_first(network, "10.77.0.3");
  UniqueFd listener;
  network.run_in(0, [&] { listener = listen_at("10.77.0.3", 7000); });
  const std::jthread server([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      pollfd entry = {.fd = listener.get(), .events = POLLIN, .revents = 0};
      if (::poll(&entry, 1, 20) != 1) continue;
      const UniqueFd client(::accept(listener.get(), nullptr, nullptr));
      ::send(client.get(), "HTTP/1.1 400 Bad Request\r\n\r\n", 28, MSG_NOSIGNAL);
    }
  });
  start_training(cluster, 1, {"--master=first:7000", "--nnodes=2"});
  CHECK(cluster.says(1, "waiting for node 0 (first)"));  // it has tried all addresses
  start_training(cluster, 0, {"--master=first:7000", "--nnodes=2"});
  check_trained(cluster);
}

TEST_CASE("hunt 92: a node that waits for the first one names all addresses of its name") {
  if (const auto what = missing()) LEAVE_OUT(*what);
  const Namespaces network(2);
  ThreeAddresses cluster(network);
  cluster.start_exactly(1, {"--master=first:7000", "--nnodes=2", "--join_timeout=3", FAKE_WORKER});
  const ChildResult end = cluster.end_of(1);
  CHECK(end.code == 75);
  CHECK_MESSAGE(contains(end.err,
                         "node 0 (first) at 10.77.0.3:7000 or 10.77.0.1:7000 or 10.77.0.11:7000 did "
                         "not answer in 3 s (--join_timeout): 10.77.0."),
                end.err);
}

// Both nodes are on loopback addresses.
void write_hosts(Cluster& cluster, int node, const std::string& lines) {
  std::ofstream(cluster.folder(node) + "/hosts") << lines;
}

TEST_CASE("hunt 95: a node that waits for the first one finds it at an address that its name got meanwhile") {
  if (!can_mount()) LEAVE_OUT("another /etc/hosts needs mount namespaces");
  Cluster cluster(2);
  const std::string port = std::to_string(cluster.port());
  const Words words = {"--master=first:" + port, "--nnodes=2", FAKE_WORKER};
  cluster.set_hosts(1, "127.0.0.9 first\n");
  cluster.start_exactly(1, {"--node_rank=1", words[0], words[1], words[2]});
  REQUIRE(cluster.says(1, "waiting for node 0 (first) at 127.0.0.9:" + port));
  write_hosts(cluster, 1, "127.0.0.1 first\n");
  cluster.set_hosts(0, "127.0.0.1 first\n");
  cluster.start_exactly(0, {"--node_rank=0", words[0], words[1], words[2]});
  for (const ChildResult& end : cluster.ends()) CHECK_MESSAGE(end.code == 0, end.err);
}

TEST_CASE("hunt 95: in Kubernetes a node waits until the names of the others have addresses") {
  if (!can_mount()) LEAVE_OUT("another /etc/hosts needs mount namespaces");
  Cluster cluster(2);
  for (const int node : {0, 1}) {
    cluster.set(node, "KUBERNETES_SERVICE_HOST", "10.96.0.1");
    cluster.set_hosts(node, node == 0 ? "127.0.0.1 first\n" : "127.0.0.2 second\n");
    cluster.start_exactly(node, {"--ips=first,second", "--node_rank=" + std::to_string(node),
                                 "--master_port=" + std::to_string(cluster.port()), FAKE_WORKER});
  }
  REQUIRE(cluster.says(0, "waiting for second to get an address (--join_timeout)"));
  REQUIRE(cluster.says(1, "waiting for first to get an address (--join_timeout)"));
  for (const int node : {0, 1}) write_hosts(cluster, node, "127.0.0.1 first\n127.0.0.2 second\n");
  for (const ChildResult& end : cluster.ends()) CHECK_MESSAGE(end.code == 0, end.err);
}

TEST_CASE("hunt 95: SIGTERM ends the wait for an address of a name") {
  Cluster cluster(1);
  cluster.set(0, "KUBERNETES_SERVICE_HOST", "10.96.0.1");
  cluster.start_exactly(0, {"--master=first.invalid:7000", "--nnodes=2", "--node_rank=1", FAKE_WORKER});
  REQUIRE(cluster.says(0, "waiting for first.invalid to get an address (--join_timeout)"));
  cluster.send(0, SIGTERM);
  const ChildResult end = cluster.end_of(0);
  CHECK(end.code == 143);
  CHECK(contains(end.err, "stopped by SIGTERM (15) while other nodes had no address\n"));
}

TEST_CASE(
    "hunt 95: a node takes over an elastic run at any address of its name, also at one that it got meanwhile") {
  if (const auto what = missing()) LEAVE_OUT(*what);
  for (const bool is_new : {false, true}) {
    CAPTURE(is_new);
    const Namespaces network(3);
    Cluster cluster(3, &network);
    const std::string others = "10.77.0.1 first\n10.77.0.3 third\n";
    // The third node knows another address of the second one, at which nobody is.
    cluster.set_hosts(0, others + "10.77.0.2 second\n");
    cluster.set_hosts(1, others + "10.77.0.2 second\n");
    cluster.set_hosts(2, others + (is_new ? "10.77.0.99 second\n" : "10.77.0.99 second\n10.77.0.2 second\n"));
    for (const int node : {0, 1, 2})
      cluster.start_exactly(node,
                            {"--ips=first,second,third", "--nnodes=2:3", FAKE_WORKER, "await", "../go"});
    for (const int node : {0, 1, 2}) REQUIRE(cluster.says(node, "log/"));
    write_hosts(cluster, 2, others + "10.77.0.2 second\n");
    cluster.kill(0);
    REQUIRE(cluster.says(1, "this node takes over"));
    REQUIRE(cluster.says(2, "the run goes on with 2 nodes"));
    cluster.shared().write("go", "");
    for (const int node : {1, 2}) {
      const ChildResult end = cluster.end_of(node);
      CHECK_MESSAGE(end.code == 0, end.err);
    }
  }
}

TEST_CASE("hunt 95: a node of an elastic run needs no name of a node that is not there") {
  if (!can_mount()) LEAVE_OUT("another /etc/hosts needs mount namespaces");
  Cluster cluster(2);
  for (const int node : {0, 1}) {
    cluster.set_hosts(node, "127.0.0.1 first\n127.0.0.2 second\n");
    cluster.start_exactly(node, {"--ips=first,second,third.invalid", "--nnodes=2:3", "--elastic_timeout=1",
                                 "--node_rank=" + std::to_string(node),
                                 "--master_port=" + std::to_string(cluster.port()), FAKE_WORKER});
  }
  for (const ChildResult& end : cluster.ends()) CHECK_MESSAGE(end.code == 0, end.err);
}

}  // namespace
}  // namespace fleetrun::several_addresses_test
