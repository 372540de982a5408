#include "launch/plan/membership.h"

#include <doctest/doctest.h>

#include "base/error/error.h"
#include "launch/cli/command_line.h"
#include "launch/cli/flags/start_by.h"

namespace fleetrun::launch::membership_test {
namespace {

const HostFacts kHost = {.addresses = {"127.0.0.1", "10.0.0.2", "192.168.0.2"}, .name = "two"};

LaunchOptions options_of(std::vector<std::string> words, const Environment& environment = {}) {
  words.emplace_back("program");
  return parse_launch_options(words, environment).options;
}

// Addresses stand for themselves; these names mean addresses on this host.
std::vector<NamedNode> names_of(const LaunchOptions& options) {
  std::vector<NamedNode> nodes = resolve_names(options);
  for (NamedNode& node : nodes) {
    if (node.name == "one") node.address = "10.0.0.1";
    if (node.name == "two") node.address = "10.0.0.2";
    if (node.name == "trap") node.address = "127.0.1.1";
    if (node.name == "nowhere.invalid") node.address = "";
  }
  return nodes;
}

Membership members_of(const std::vector<std::string>& words, const Environment& environment = {}) {
  const LaunchOptions options = options_of(words, environment);
  return resolve_membership(options, names_of(options), kHost);
}

std::string error_of(const std::vector<std::string>& words, const Environment& environment = {}) {
  try {
    members_of(words, environment);
  } catch (const Error& error) {
    CHECK(error.exit_code() == 2);
    return error.message() + (error.hint().empty() ? "" : " | " + error.hint());
  }
  return "no error";
}

TEST_CASE("one address, or one node, is a run on this host alone") {
  CHECK_FALSE(asks_for_several_nodes(options_of({})));
  CHECK_FALSE(asks_for_several_nodes(options_of({"--ips=10.0.0.2", "--nnodes=1"})));
  CHECK(asks_for_several_nodes(options_of({"--ips=10.0.0.1,10.0.0.2"})));
  CHECK(asks_for_several_nodes(options_of({"--nnodes=2"})));
}

TEST_CASE("a node finds its place in --ips by its own addresses, and all meet at the first") {
  const Membership members = members_of({"--ips=10.0.0.1, 10.0.0.2, 10.0.0.3"});
  CHECK(members.nodes == 3);
  CHECK(members.node_rank == 1);
  CHECK(members.host == "10.0.0.2");
  CHECK(members.meeting == Endpoint{"10.0.0.1", 6069});
  CHECK_FALSE(members.may_be_first);
  CHECK(members.name_of(2) == "node 2 (10.0.0.3)");
  CHECK(members_of({"--ips=10.0.0.2,10.0.0.1"}).may_be_first);
}

TEST_CASE("a command that starts the nodes from another host than the first says where to type it") {
  LaunchOptions options = options_of({"--ips=one,10.0.0.3"});
  options.node_rank = {0, Origin::environment, kPlaceOfStarter};
  try {
    resolve_membership(options, names_of(options), kHost);
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.exit_code() == 2);
    CHECK(
        error.message() ==
        "fleetrun starts the other nodes from the first one, one, and this host is two, with the addresses 127.0.0.1, "
        "10.0.0.2, 192.168.0.2");
    CHECK(error.hint() == "type the same command on one: ssh one \"cd '$PWD' && fleetrun ...\"");
  }
}

TEST_CASE("--master_port is noted where another flag names the port at which the nodes meet") {
  for (const std::string flag : {"--master", "--rdzv_endpoint"}) {
    LaunchOptions two_ports = options_of({"--nnodes=2", flag + "=10.0.0.1:7000", "--master_port=7001"});
    note_flags_of_several_nodes(two_ports);
    CHECK(two_ports.notes ==
          std::vector<std::string>{"--master_port has no effect beside " + flag + "=HOST:PORT"});
  }
}

TEST_CASE("flags about several nodes are noted when the run has one") {
  LaunchOptions alone = options_of({"--spares=1", "--elastic_timeout=9", "--rejoin_at=a"});
  note_flags_of_several_nodes(alone);
  CHECK(alone.notes == std::vector<std::string>{"--spares has no effect on a run with one node",
                                                "--elastic_timeout has no effect on a run with one node",
                                                "--rejoin_at has no effect on a run with one node"});
  LaunchOptions together = options_of({"--ips=one,two", "--spares=1"});
  note_flags_of_several_nodes(together);
  CHECK(together.notes.empty());
  LaunchOptions listed = options_of({"--ips=one,two", "--spares=1", "--rejoin_at=one,two"});
  note_flags_of_several_nodes(listed);
  CHECK(listed.notes == std::vector<std::string>{"--rejoin_at has no effect on a run with --ips: a node asks "
                                                 "all addresses of that list"});
  LaunchOptions fixed = options_of({"--ips=one,two", "--nnodes=2:2", "--elastic_timeout=9"});
  note_flags_of_several_nodes(fixed);
  CHECK(fixed.notes ==
        std::vector<std::string>{"--elastic_timeout has no effect on a run that is not elastic "
                                 "(--nnodes=MIN:MAX, with MIN below MAX)"});
}

TEST_CASE("--nnodes with a shorter --ips names both") {
  CHECK(
      error_of({"--nnodes=2", "--ips=10.0.0.1"}) ==
      "--nnodes is 2, but --ips lists only 10.0.0.1 | list all nodes in --ips, or give --master=10.0.0.1:6069 instead of --ips");
  CHECK(members_of({"--nnodes=2", "--ips=10.0.0.1", "--master=10.0.0.1:6069"}).nodes == 2);
}

TEST_CASE("names are as good as addresses, and workers see what the user wrote") {
  const Membership members = members_of({"--ips=one,two", "--master_port=7000"});
  CHECK(members.node_rank == 1);
  CHECK(members.host == "two");
  CHECK(members.address == "10.0.0.2");
  CHECK(members.meeting == Endpoint{"10.0.0.1", 7000});
}

TEST_CASE("of several addresses of a name, a host takes its own, and others get all of the first node's") {
  const LaunchOptions list = options_of({"--ips=one,two"});
  const Membership by_list = resolve_membership(
      list, {{"one", "10.0.0.1", {"192.168.0.1"}}, {"two", "203.0.113.2", {"10.0.0.2"}}}, kHost);
  CHECK(by_list.node_rank == 1);
  CHECK(by_list.address == "10.0.0.2");
  CHECK(by_list.meetings() == std::vector<Endpoint>{{"10.0.0.1", 6069}, {"192.168.0.1", 6069}});

  const Membership first = resolve_membership(
      list, {{"one", "203.0.113.2", {"127.0.0.1", "10.0.0.2"}}, {"two", "10.0.0.3"}}, kHost);
  CHECK(first.node_rank == 0);
  CHECK(first.meetings() == std::vector<Endpoint>{{"10.0.0.2", 6069}});
}

TEST_CASE("--host may be any address of this host's name") {
  const LaunchOptions options = options_of({"--ips=one,two", "--host=192.168.0.2"});
  const Membership members =
      resolve_membership(options, {{"one", "10.0.0.1"}, {"two", "10.0.0.2", {"192.168.0.2"}}}, kHost);
  CHECK(members.node_rank == 1);
  CHECK(members.host == "two");
  CHECK(members.address == "192.168.0.2");
}

TEST_CASE("traps of --ips are told apart") {
  CHECK(
      error_of({"--ips=10.0.0.1,10.0.0.3"}) ==
      "--ips lists no address of this host (127.0.0.1, 10.0.0.2, 192.168.0.2) | a node finds its place in the list by its own addresses");
  CHECK(error_of({"--ips=10.0.0.1,10.0.0.1"}) == "--ips lists 10.0.0.1 twice");
  CHECK(error_of({"--ips=one,10.0.0.1"}) == "--ips lists one and 10.0.0.1, which are both 10.0.0.1");
  CHECK(
      error_of({"--ips=10.0.0.2,192.168.0.2"}) ==
      "--ips lists several addresses of this host: nodes 0, 1 | --node_rank says which of them this node is");
  CHECK(
      error_of({"--ips=10.0.0.2,127.0.0.1"}) ==
      "--ips lists 127.0.0.1 beside addresses of other hosts; on every node that address means the node itself");
  CHECK(
      error_of({"--ips=10.0.0.2,trap"}) ==
      "--ips names trap, which is 127.0.1.1 on this host: no other node can reach that | give its address instead, or correct the line of trap in /etc/hosts");
  CHECK(error_of({"--ips=10.0.0.2,nowhere.invalid"}) ==
        "--ips names nowhere.invalid, which this host cannot resolve");
  CHECK(
      error_of({"--ips=10.0.0.1,nowhere.invalid:7000"}) ==
      "--ips names nowhere.invalid:7000, which this host cannot resolve | wanted hosts without ports, such as "
      "10.0.0.2,10.0.0.3; --master_port chooses the port where the nodes meet");
  CHECK(error_of({"--ips=10.0.0.1,10.0.0.2,"}) ==
        "--ips has an empty name: wanted a host before, between and after its commas");
  CHECK(
      error_of({"--ips=127.0.0.1,127.0.0.2"}) ==
      "--ips lists loopback addresses only, so each of them is this host | for a rehearsal on one host, start each node with its --node_rank");
  CHECK(error_of({"--ips=10.0.0.1,10.0.0.2", "--nnodes=3"}) == "--nnodes is 3, but --ips lists 2 nodes");
}

TEST_CASE("a rehearsal on one host names each node's place") {
  const Membership members = members_of({"--ips=127.0.0.1,127.0.0.2", "--node_rank=1"});
  CHECK(members.node_rank == 1);
  CHECK(members.host == "127.0.0.2");
  CHECK(members_of({"--ips=127.0.0.1,127.0.0.2", "--host=127.0.0.1"}).node_rank == 0);
}

const HostFacts kSixHost = {.addresses = {"127.0.0.1", "10.0.0.2", "::1", "fd00::2"}, .name = "two"};

Membership six_members_of(const std::vector<std::string>& words) {
  const LaunchOptions options = options_of(words);
  return resolve_membership(options, names_of(options), kSixHost);
}

TEST_CASE("nodes may have IPv6 addresses, with or without brackets, in any spelling") {
  for (const char* ips : {"--ips=fd00::1, fd00::2", "--ips=[fd00::1],[FD00:0::2]"}) {
    CAPTURE(ips);
    const Membership members = six_members_of({ips});
    CHECK(members.node_rank == 1);
    CHECK(members.host == "fd00::2");
    CHECK(members.address == "fd00::2");
    CHECK(members.meeting == Endpoint{"fd00::1", 6069});
    CHECK(members.name_of(0) == "node 0 (fd00::1)");
  }
  CHECK(six_members_of({"--ips=fd00::1,fd00::2", "--master=[FD00::1]:7000"}).meeting ==
        Endpoint{"fd00::1", 7000});
  CHECK(six_members_of({"--ips=fd00::1,fd00::2", "--host=[fd00::2]"}).node_rank == 1);
}

TEST_CASE("a list of both families, and addresses that only one link knows, are errors") {
  CHECK(
      error_of({"--ips=10.0.0.1,fd00::2"}) ==
      "--ips lists 10.0.0.1 over IPv4 and fd00::2 over IPv6: all nodes must be reachable over IPv4, or all over IPv6");
  CHECK(error_of({"--ips=fd00::1,two"}).starts_with("--ips lists fd00::1 over IPv6 and two over IPv4: "));
  const std::string link_local =
      ", a link-local address, which other hosts cannot reach | give the nodes' global or unique local addresses (fd00::/8)";
  CHECK(error_of({"--ips=fe80::1,fe80::2"}) == "--ips names fe80::1" + link_local);
  CHECK(error_of({"--nnodes=2", "--master=[fe80::1]:7000"}) == "--master names fe80::1" + link_local);
}

TEST_CASE("IPv6 has one loopback address") {
  CHECK(error_of({"--ips=::1,fd00::2"}) ==
        "--ips lists ::1 beside addresses of other hosts; on every node that address means the node itself");
  CHECK(error_of({"--ips=::1,[::1]"}) == "--ips lists ::1 twice");
  const Membership members = six_members_of({"--nnodes=2", "--master=[::1]:7000"});
  CHECK(members.may_be_first);
  CHECK(members.meeting == Endpoint{"::1", 7000});
}

TEST_CASE("the address of a node is of the family over which the nodes meet") {
  CHECK(six_members_of({"--nnodes=2", "--master=[fd00::1]:7000", "--host=fd00::2"}).address == "fd00::2");
  CHECK(error_of({"--nnodes=2", "--master=[fd00::1]:7000", "--host=10.0.0.2"}) ==
        "--host is 10.0.0.2, which has no IPv6 address, but the nodes meet at [fd00::1]:7000");
  CHECK(error_of({"--nnodes=2", "--master=10.0.0.1:7000", "--host=fd00::2"}) ==
        "--host is fd00::2, which has no IPv4 address, but the nodes meet at 10.0.0.1:7000");
}

TEST_CASE("a place that is not this host's is an error") {
  CHECK(error_of({"--ips=10.0.0.1,10.0.0.2", "--node_rank=2"}) == "--node_rank is 2, but there are 2 nodes");
  CHECK(
      error_of({"--ips=10.0.0.1,10.0.0.2", "--node_rank=0"}) ==
      "--node_rank is 0, but node 0 is 10.0.0.1, which is not an address of this host (127.0.0.1, 10.0.0.2, 192.168.0.2)");
  CHECK(error_of({"--ips=10.0.0.1,10.0.0.2", "--host=10.0.0.9"}) ==
        "--host is 10.0.0.9, which --ips does not list");
  CHECK(error_of({"--ips=10.0.0.1,10.0.0.2", "--master=10.0.0.2:7000"}) ==
        "--master names 10.0.0.2, but the first node of --ips is 10.0.0.1");
}

TEST_CASE("with --master the first node is the one at whose address the nodes meet") {
  const Membership first = members_of({"--nnodes=2", "--master=10.0.0.2:7000"});
  CHECK(first.may_be_first);
  CHECK_FALSE(first.node_rank);
  CHECK(first.meeting == Endpoint{"10.0.0.2", 7000});
  const Membership other = members_of({"--nnodes=2", "--master=10.0.0.1:7000", "--node_rank=1"});
  CHECK_FALSE(other.may_be_first);
  CHECK(other.node_rank == 1);
  CHECK(other.host == "");
}

TEST_CASE("hunt 38: a meeting point whose name means loopback here is warned of") {
  CHECK(members_of({"--nnodes=2", "--master=localhost:7000"}).warning.empty());
  CHECK(members_of({"--nnodes=2", "--master=127.0.0.1:7000"}).warning.empty());
  CHECK(members_of({"--nnodes=2", "--master=10.0.0.1:7000"}).warning.empty());
  CHECK(
      members_of({"--nnodes=2", "--master=127.1:7000"})
          .warning ==  // a name that needs no entry in /etc/hosts
      "--master names 127.1, which is 127.0.0.1 on this host: nodes on other hosts cannot reach that; give its "
      "address instead, or correct the line of 127.1 in /etc/hosts");
}

TEST_CASE("torchrun's words name the meeting point, too") {
  CHECK(members_of({"--nnodes=2", "--rdzv-endpoint=10.0.0.1"}).meeting == Endpoint{"10.0.0.1", 29400});
  CHECK(members_of({"--nnodes=2", "--master-addr=10.0.0.1", "--master-port=7000"}).meeting ==
        Endpoint{"10.0.0.1", 7000});
  CHECK(six_members_of({"--nnodes=2", "--rdzv-endpoint=[fd00::1]"}).meeting == Endpoint{"fd00::1", 29400});
  CHECK(six_members_of({"--nnodes=2", "--rdzv-endpoint=[fd00::1]:7000"}).meeting ==
        Endpoint{"fd00::1", 7000});
  CHECK(six_members_of({"--nnodes=2", "--rdzv-endpoint=fd00::1"}).meeting == Endpoint{"fd00::1", 29400});
  CHECK(six_members_of({"--nnodes=2", "--master-addr=[fd00::1]"}).meeting == Endpoint{"fd00::1", 6069});
}

TEST_CASE("PADDLE_MASTER says where several nodes meet, if no flag does") {
  Environment environment;
  environment.set("PADDLE_NNODES", "2");
  environment.set("PADDLE_MASTER", "10.0.0.1:7000");
  CHECK(members_of({}, environment).meeting == Endpoint{"10.0.0.1", 7000});
  CHECK(members_of({"--master=10.0.0.2:7001"}, environment).meeting == Endpoint{"10.0.0.2", 7001});
  CHECK(members_of({"--rdzv_endpoint=10.0.0.2:7001"}, environment).meeting == Endpoint{"10.0.0.2", 7001});
  CHECK(members_of({"--ips=10.0.0.1,10.0.0.2"}, environment).meeting == Endpoint{"10.0.0.1", 6069});
}

TEST_CASE("several nodes without a meeting point, or with a rank that cannot be, are errors") {
  Environment of_a_cluster;
  of_a_cluster.set("PADDLE_NNODES", "2");
  CHECK(
      error_of({}, of_a_cluster) ==
      "PADDLE_NNODES is 2, but nothing says where the nodes meet | --master=HOST:PORT names the first node; --ips lists all of them (docs/many-hosts.md); --nnodes=1 starts a run of this host alone");
  CHECK(
      error_of({"--nnodes=2"}) ==
      "--nnodes is 2, but nothing says where the nodes meet | --master=HOST:PORT names the first node; --ips lists all of them (docs/many-hosts.md)");
  CHECK(error_of({"--nnodes=2", "--master=10.0.0.2:7000", "--node_rank=2"}) ==
        "--node_rank is 2, but there are 2 nodes");
  CHECK(
      error_of({"--nnodes=2", "--master=10.0.0.1:7000", "--node_rank=0"}) ==
      "--node_rank is 0, but the nodes meet at 10.0.0.1:7000, which is not an address of this host (127.0.0.1, 10.0.0.2, 192.168.0.2) | the nodes meet at an address of node 0");
}

}  // namespace
}  // namespace fleetrun::launch::membership_test
