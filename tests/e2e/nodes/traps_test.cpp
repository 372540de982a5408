// Command lines of runs over several nodes that cannot be meant: each has words of its own, and nothing starts.
#include "e2e/nodes/cluster.h"

namespace fleetrun::traps_test {
namespace {

struct Trap {
  Words flags;
  std::string told;
};

void check(const Trap& trap) {
  CAPTURE(trap.told);
  const Launch launch;
  Words words = trap.flags;
  words.emplace_back(FAKE_WORKER);
  const ChildResult end = launch.run_words(words);
  CHECK(end.code == 2);
  CHECK_MESSAGE(contains(end.err, "fleetrun: error: " + trap.told), end.err);
  CHECK_FALSE(launch.folder.has("log"));
}

TEST_CASE("lists of addresses that cannot be meant are refused") {
  const std::vector<Trap> traps = {
      {{"--ips=10.1.1.1,10.1.1.1"}, "--ips lists 10.1.1.1 twice"},
      {{"--ips=127.0.0.1,10.1.1.1"},
       "--ips lists 127.0.0.1 beside addresses of other hosts; on every node that address means the node itself"},
      {{"--ips=10.1.1.1,localhost"}, "--ips names localhost, which is 127.0.0.1 on this host"},
      {{"--ips=10.1.1.1,no-such-host.invalid"},
       "--ips names no-such-host.invalid, which this host cannot resolve"},
      {{"--ips=203.0.113.1,203.0.113.2"}, "--ips lists no address of this host ("},
      {{"--ips=127.0.0.1,127.0.0.2"}, "--ips lists loopback addresses only, so each of them is this host"},
      {{"--ips=127.0.0.1,127.0.0.2", "--node_rank=2"}, "--node_rank is 2, but there are 2 nodes"},
      {{"--ips=203.0.113.1,203.0.113.2", "--node_rank=1"},
       "--node_rank is 1, but node 1 is 203.0.113.2, which is not an address of this host ("},
      {{"--ips=127.0.0.1,127.0.0.2", "--host=127.0.0.3"}, "--host is 127.0.0.3, which --ips does not list"},
      {{"--ips=127.0.0.1,127.0.0.2", "--nnodes=3", "--node_rank=0"},
       "--nnodes is 3, but --ips lists 2 nodes"},
      {{"--ips=127.0.0.1,127.0.0.2", "--master=127.0.0.2:7000", "--node_rank=0"},
       "--master names 127.0.0.2, but the first node of --ips is 127.0.0.1"},
  };
  for (const Trap& trap : traps) check(trap);
}

TEST_CASE("meeting points that cannot be meant are refused") {
  const std::vector<Trap> traps = {
      {{"--nnodes=2"}, "--nnodes is 2, but nothing says where the nodes meet"},
      {{"--nnodes=2", "--master=127.0.0.1:7000", "--node_rank=2"}, "--node_rank is 2, but there are 2 nodes"},
      {{"--nnodes=2", "--master=203.0.113.1:7000", "--node_rank=0"},
       "--node_rank is 0, but the nodes meet at 203.0.113.1:7000, which is not an address of this host ("},
      {{"--nnodes=2", "--master=no-such-host.invalid:7000"},
       "this host cannot resolve no-such-host.invalid, where the nodes meet"},
  };
  for (const Trap& trap : traps) check(trap);
}

TEST_CASE("a host with several addresses of --ips is asked which node it is") {
  if (const auto missing = Namespaces::missing()) LEAVE_OUT(*missing);
  const Namespaces network(1);
  const Words setup = {"/bin/sh", "-c", "PATH=$PATH:/usr/sbin:/sbin; ip address add 10.77.0.9/24 dev eth0"};
  REQUIRE(run_child(network.in(0, setup)).code == 0);
  const Launch launch;
  const ChildResult end =
      run_child(network.in(0, {FLEETRUN_BINARY, "--ips=10.77.0.1,10.77.0.9", FAKE_WORKER}), launch.options());
  CHECK(end.code == 2);
  CHECK_MESSAGE(contains(end.err, "--ips lists several addresses of this host: nodes 0, 1"), end.err);
  CHECK(contains(end.err, "hint: --node_rank says which of them this node is"));
}

TEST_CASE("a node that no other can reach at its name's address, 127.0.1.1, is told why") {
  if (!is_root() || !can_mount()) LEAVE_OUT("another /etc/hosts needs root and mount namespaces");
  const Launch launch;
  launch.folder.write("hosts", "127.0.0.1 localhost\n127.0.1.1 thishost\n10.77.0.2 otherhost\n");
  const ChildResult end =
      run_child({"/usr/bin/unshare", "-m", "/bin/sh", "-c", "mount --bind hosts /etc/hosts && exec \"$@\"",
                 "sh", FLEETRUN_BINARY, "--ips=thishost,otherhost", FAKE_WORKER},
                launch.options());
  CHECK(end.code == 2);
  CHECK_MESSAGE(contains(end.err,
                         "--ips names thishost, which is 127.0.1.1 on this host: no other node can "
                         "reach that"),
                end.err);
  CHECK(contains(end.err, "correct the line of thishost in /etc/hosts"));
}

}  // namespace
}  // namespace fleetrun::traps_test
