#include <doctest/doctest.h>

#include "launch/doctor/examined.h"
#include "launch/doctor/judge.h"

namespace fleetrun::launch::judge_network_test {
namespace {

using Texts = std::vector<std::string>;
using testing::healthy;
using testing::texts_of;

TEST_CASE("a node that nobody can connect to is named once, and that it can connect to the others") {
  Examination examination = healthy(4);
  for (Reach& reach : examination.reach)
    if (reach.to == 2) reach.problem = "no answer";
  CHECK(
      texts_of(judge_reach(examination)) ==
      Texts{
          "firewall: node 2 (10.0.0.3, host2): nodes 0, 1, 3 cannot connect to it (no answer; the other direction "
          "works)"});
}

TEST_CASE("a node that can connect to nobody is named, and not the others") {
  Examination examination = healthy(4);
  for (Reach& reach : examination.reach)
    if (reach.from == 1) reach.problem = "no answer";
  CHECK(
      texts_of(judge_reach(examination)) ==
      Texts{
          "firewall: node 1 (10.0.0.2, host1): it cannot connect to nodes 0, 2, 3 (no answer; the other direction "
          "works)"});
}

TEST_CASE("of one link that is cut, the receiving node is named") {
  Examination examination = healthy(2);
  examination.reach[0].problem = "Connection refused (errno 111)";
  CHECK(
      texts_of(judge_reach(examination)) ==
      Texts{
          "firewall: node 1 (10.0.0.2, host1): node 0 cannot connect to it (Connection refused (errno 111); the "
          "other direction works)"});
}

TEST_CASE("loss above 1 % on all links to one node names this node") {
  Examination examination = healthy(3);
  for (LinkFacts& link : examination.links)
    if (link.to == 2) link.retransmitted = 500;
  CHECK(
      texts_of(judge_links(examination)) ==
      Texts{
          "loss: node 2 (10.0.0.3, host2): up to 5.0 % of the segments from nodes 0, 1 were sent again: packets are "
          "lost"});
}

TEST_CASE("a transfer that stalls is a consequence of the packets that its node loses") {
  Examination examination = healthy(4);
  for (LinkFacts& link : examination.links)
    if (link.to == 2) link.retransmitted = 500;
  for (LinkFacts& link : examination.links)
    if (link.from == 3 && link.to == 2) link.problem = "no answer";
  const Texts found = texts_of(judge_links(examination));
  REQUIRE(found.size() == 1);
  CHECK(found[0].starts_with("loss: node 2 "));
}

TEST_CASE("some retransmits are no loss") {
  CHECK_FALSE(is_suspicious({.segments = 10000, .retransmitted = 99}));
  CHECK(is_suspicious({.segments = 10000, .retransmitted = 100}));
  CHECK_FALSE(is_suspicious({.segments = 10, .retransmitted = 4}));
}

TEST_CASE("a node with a smaller MTU is named") {
  Examination examination = healthy(3);
  for (LinkFacts& link : examination.links)
    if (link.from == 1) link.mtu = 576;
  CHECK(
      texts_of(judge_links(examination)) ==
      Texts{"mtu: node 1 (10.0.0.2, host1): its packets may have 576 bytes (MTU), and 1500 on other nodes"});
}

TEST_CASE("transfers that fail name the node at which they do") {
  Examination examination = healthy(3);
  for (LinkFacts& link : examination.links)
    if (link.to == 0) link.problem = "full packets do not arrive";
  CHECK(
      texts_of(judge_links(examination)) ==
      Texts{
          "transfer: node 0 (10.0.0.1, host0): transfers from nodes 1, 2 fail: full packets do not arrive"});
}

TEST_CASE("a node is slow only if its fastest link is") {
  Examination examination = healthy(4);
  for (LinkFacts& link : examination.links)
    if (link.from == 3 || link.to == 3) link.bytes_per_s = 1e8;
  CHECK(
      texts_of(judge_links(examination)) ==
      Texts{
          "bandwidth: node 3 (10.0.0.4, host3): its fastest link carries 100 MB/s, and 1000 MB/s on the median "
          "node"});
  examination.links.back().bytes_per_s = 1e9;
  CHECK(judge_links(examination).empty());
}

TEST_CASE("a node whose cores other programs use needs no full bandwidth") {
  Examination examination = healthy(4);
  for (LinkFacts& link : examination.links)
    if (link.from == 3 || link.to == 3) link.bytes_per_s = 1e8;
  examination.nodes[3].speed.emplace().share = 0.1;
  CHECK(judge_links(examination).empty());
  examination.nodes[3].speed->share = 0.5;
  CHECK(judge_links(examination).size() == 1);
  examination.nodes[3].speed->others = 0.9;
  CHECK(judge_links(examination).empty());
}

TEST_CASE("a cgroup limits a node to half a core: the doctor reports its CPU and not its bandwidth") {
  Examination examination = healthy(4);
  for (LinkFacts& link : examination.links)
    if (link.from == 3 || link.to == 3) link.bytes_per_s = 2e8;
  examination.nodes[3].speed = CpuSpeed{.gflops = 10, .share = 0.5};
  examination.nodes[3].facts->cpu_limit = 0.5;
  const auto findings = judge(examination);
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].topic == "cpu");
}

TEST_CASE("the fastest link of a node with a low bandwidth is measured again, and no other link") {
  Examination examination = healthy(4);
  CHECK(narrow_links(examination).empty());
  for (LinkFacts& link : examination.links)
    if (link.from == 3 || link.to == 3) link.bytes_per_s = link.to == 1 ? 2e8 : 1e8;
  CHECK(narrow_links(examination) == std::vector<std::pair<int, int>>{{3, 1}});
}

}  // namespace
}  // namespace fleetrun::launch::judge_network_test
