#include "launch/schedulers/topology.h"

#include <doctest/doctest.h>

#include "launch/schedulers/facts.h"

namespace fleetrun::launch::topology_test {
namespace {

using Words = std::vector<std::string>;
using test::error_of;

Words in_order(const Words& hosts, const std::string& topology) {
  Words ordered;
  for (const std::size_t place : order_by_switch(hosts, parse_topology("topology.conf", topology)))
    ordered.push_back(hosts[place]);
  return ordered;
}

// As in the examples of "man topology.conf".
constexpr const char* kThreeLeaves =
    "# The network\n"
    "SwitchName=s0 Nodes=tux[0-5]  LinkSpeed=100\n"
    "switchname=s1 NODES=tux[6-11]\n"
    "SwitchName=s2 Nodes=tux[12-17]\n"
    "SwitchName=s3 Switches=s[0-2]\n";

TEST_CASE("Slurm's topology.conf lists switches with their nodes or switches") {
  const std::vector<Switch> switches = parse_topology("topology.conf", kThreeLeaves);
  REQUIRE(switches.size() == 4);
  CHECK(switches[0] == Switch{"s0", {}, {"tux0", "tux1", "tux2", "tux3", "tux4", "tux5"}});
  CHECK(switches[3] == Switch{"s3", {"s0", "s1", "s2"}, {}});
}

TEST_CASE("a line that describes no switch is an error with its number") {
  const std::string wanted = ", wanted SwitchName=NAME with Nodes=LIST or Switches=LIST";
  const auto error = [](const std::string& text) { return error_of([&] { parse_topology("t", text); }); };
  CHECK(error("\nBlockName=b1 Nodes=n1\n") == "line 2 of t has \"BlockName=b1\"" + wanted);
  CHECK(error("- topology: x\n") == "line 1 of t has \"-\"" + wanted);
  CHECK(error("Nodes=n1\n") == "line 1 of t names no switch" + wanted);
  CHECK(error("SwitchName=s1\n") == "line 1 of t says nothing about switch s1" + wanted);
  CHECK(error("# nothing\n") == "t describes no switch" + wanted);
  CHECK(error("SwitchName=a Nodes=n1\nSwitchName=a Nodes=n2\n") ==
        "line 2 of t describes switch a again, after line 1");
  CHECK(error("SwitchName=s1 Nodes=n[1-\n").starts_with("line 1 of t is "));
}

TEST_CASE("the nodes of a switch follow each other in the order that they had") {
  CHECK(in_order({"tux0", "tux6", "tux12", "tux1", "tux7"}, kThreeLeaves) ==
        Words{"tux0", "tux1", "tux6", "tux7", "tux12"});
  CHECK(in_order({"tux2", "tux1", "tux0"}, kThreeLeaves) == Words{"tux2", "tux1", "tux0"});
}

TEST_CASE("the first node stays the first, and those of its switch follow it") {
  CHECK(in_order({"tux12", "tux0", "tux13", "tux1"}, kThreeLeaves) ==
        Words{"tux12", "tux13", "tux0", "tux1"});
}

TEST_CASE("the switches of one upper switch follow each other") {
  CHECK(in_order({"a1", "c1", "b1", "d1", "a2", "c2", "b2"},
                 "SwitchName=a Nodes=a[1-2]\nSwitchName=b Nodes=b[1-2]\nSwitchName=c Nodes=c[1-2]\n"
                 "SwitchName=d Nodes=d1\nSwitchName=left Switches=a,b\nSwitchName=right Switches=c,d\n"
                 "SwitchName=top Switches=left,right\n") == Words{"a1", "a2", "b1", "b2", "c1", "c2", "d1"});
}

TEST_CASE("nodes without a switch follow each other, and a domain makes no difference") {
  const std::string one_leaf = "SwitchName=s1 Nodes=n[1-2]\n";
  CHECK(in_order({"n1.site", "x", "n2.site", "y"}, one_leaf) == Words{"n1.site", "n2.site", "x", "y"});
  CHECK(without_switch({"n1.site", "x", "n2", "10.0.0.1"}, parse_topology("t", one_leaf)) ==
        Words{"x", "10.0.0.1"});
}

TEST_CASE("a switch below itself is an error") {
  CHECK(error_of([] {
          in_order({"n1", "n2"}, "SwitchName=a Nodes=n1 Switches=b\nSwitchName=b Switches=a\n");
        }).ends_with(" below itself"));
}

TEST_CASE("hosts are the same when at most one of them has a domain") {
  CHECK(is_same_host("n1", "n1.site"));
  CHECK_FALSE(is_same_host("n1.here", "n1.there"));
  CHECK_FALSE(is_same_host("n1", "n2"));
  CHECK_FALSE(is_same_host("10.0.0.1", "10.0.0.2"));
}

}  // namespace
}  // namespace fleetrun::launch::topology_test
