#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/text/plural.h"
#include "launch/doctor/judge.h"
#include "launch/doctor/median.h"

namespace fleetrun::launch {
namespace {

constexpr double kMostLoss = 0.01;           // of the segments; a healthy network loses far less
constexpr std::int64_t kFewRetransmits = 5;  // may happen on a healthy network that is busy
constexpr double kSlowNetwork = 0.3;         // of the median bandwidth
constexpr double kOddMtu = 0.9;              // of the greatest MTU

// Many bad links of one node are one finding.
struct Culprit {
  int node = 0;
  bool receives = true;    // the links to the node are bad; otherwise those from it
  std::vector<int> peers;  // at the other ends
};

// The fewest nodes that explain all bad links, greedily. Of two that explain as much, the one that receives.
std::vector<Culprit> find_culprits(std::vector<std::pair<int, int>> links) {
  std::vector<Culprit> culprits;
  while (!links.empty()) {
    std::map<std::pair<int, bool>, std::vector<int>> of;
    for (const auto& [from, to] : links) {
      of[{to, true}].push_back(from);
      of[{from, false}].push_back(to);
    }
    const auto worst = std::max_element(of.begin(), of.end(), [](const auto& a, const auto& b) {
      return std::pair(a.second.size(), a.first.second) < std::pair(b.second.size(), b.first.second);
    });
    const auto [node, receives] = worst->first;
    culprits.push_back({node, receives, worst->second});
    std::erase_if(links, [&, node = node, receives = receives](const auto& link) {
      return (receives ? link.second : link.first) == node;
    });
  }
  return culprits;
}

std::string nodes_in_words(const std::vector<int>& nodes) {
  return fmt::format("{} {}", nodes.size() == 1 ? "node" : "nodes", fmt::join(nodes, ", "));
}

const Reach* find_reach(const Examination& examination, int from, int to) {
  for (const Reach& reach : examination.reach)
    if (reach.from == from && reach.to == to) return &reach;
  return nullptr;
}

std::vector<std::pair<int, int>> ends_of(const std::vector<LinkFacts>& links) {
  std::vector<std::pair<int, int>> ends;
  ends.reserve(links.size());
  for (const LinkFacts& link : links) ends.emplace_back(link.from, link.to);
  return ends;
}

DoctorFinding finding_about(const Examination& examination, int node, const char* topic,
                            const std::string& text) {
  return {{node}, topic, fmt::format("{}: {}", name_of_node(examination, node), text)};
}

void judge_loss(const Examination& examination, std::vector<DoctorFinding>& found) {
  std::vector<LinkFacts> bad;
  for (const LinkFacts& link : examination.links)
    if (link.problem.empty() && is_suspicious(link)) bad.push_back(link);
  for (const Culprit& culprit : find_culprits(ends_of(bad))) {
    double worst = 0;
    for (const LinkFacts& link : bad)
      if ((culprit.receives ? link.to : link.from) == culprit.node) worst = std::max(worst, link.loss());
    found.push_back(finding_about(
        examination, culprit.node, "loss",
        fmt::format("up to {:.1f} % of the segments {} {} were sent again: packets are lost", 100 * worst,
                    culprit.receives ? "from" : "to", nodes_in_words(culprit.peers))));
  }
}

// Ignores the transfers of a node that loses packets (`found` has that finding): they stall because of the loss.
void judge_stalls(const Examination& examination, std::vector<DoctorFinding>& found) {
  const auto loses_packets = [&, known = found](int node) {
    return std::any_of(known.begin(), known.end(), [&](const DoctorFinding& one) {
      return one.topic == "loss" && one.nodes.front() == node;
    });
  };
  std::vector<LinkFacts> bad;
  for (const LinkFacts& link : examination.links)
    if (!link.problem.empty() && !loses_packets(link.from) && !loses_packets(link.to)) bad.push_back(link);
  for (const Culprit& culprit : find_culprits(ends_of(bad)))
    found.push_back(finding_about(examination, culprit.node, "transfer",
                                  fmt::format("transfers {} {} fail: {}", culprit.receives ? "from" : "to",
                                              nodes_in_words(culprit.peers), bad.front().problem)));
}

// Of its own links outward: the kernel of the sender knows the MTU of the way.
std::map<int, int> least_mtus(const Examination& examination) {
  std::map<int, int> mtus;
  for (const LinkFacts& link : examination.links) {
    if (link.mtu == 0) continue;
    const auto [place, added] = mtus.try_emplace(link.from, link.mtu);
    if (!added) place->second = std::min(place->second, link.mtu);
  }
  return mtus;
}

void judge_mtus(const Examination& examination, std::vector<DoctorFinding>& found) {
  const std::map<int, int> mtus = least_mtus(examination);
  int greatest = 0;
  for (const auto& [node, mtu] : mtus) greatest = std::max(greatest, mtu);
  for (const auto& [node, mtu] : mtus)
    if (mtu < kOddMtu * greatest)
      found.push_back(finding_about(
          examination, node, "mtu",
          fmt::format("its packets may have {} bytes (MTU), and {} on other nodes", mtu, greatest)));
}

// The fastest link of each node, and the median of their bandwidths.
struct Bandwidths {
  std::map<int, LinkFacts> fastest;
  double usual = 0;  // bytes/s

  bool is_low(const LinkFacts& link) const { return link.bytes_per_s < kSlowNetwork * usual; }
};

Bandwidths bandwidths_of(const Examination& examination) {
  Bandwidths all;
  for (const LinkFacts& link : examination.links)
    for (const int node : {link.from, link.to}) {
      const auto [place, added] = all.fastest.try_emplace(node, link);
      if (!added && link.bytes_per_s > place->second.bytes_per_s) place->second = link;
    }
  std::vector<double> each;
  each.reserve(all.fastest.size());
  for (const auto& [node, link] : all.fastest) each.push_back(link.bytes_per_s);
  all.usual = upper_median(each);
  return all;
}

// The share of a core that other programs and its cgroup leave to the node: a link cannot carry more than the node has time for. A cgroup
// that leaves too little is a finding about the CPU.
double share_of_core(const Examination& examination, int node) {
  constexpr double kLeastShare = 0.01;
  const NodeExamination& one = examination.nodes[static_cast<std::size_t>(node)];
  if (!one.speed) return 1;
  return std::clamp(std::min(one.speed->share, 1 - one.speed->others), kLeastShare, 1.0);
}

void judge_bandwidth(const Examination& examination, std::vector<DoctorFinding>& found) {
  const Bandwidths all = bandwidths_of(examination);
  for (const auto& [node, link] : all.fastest) {
    const bool known =
        std::any_of(found.begin(), found.end(),
                    [&, node = node](const DoctorFinding& finding) { return finding.nodes.front() == node; });
    LinkFacts on_free_cores = link;
    on_free_cores.bytes_per_s /= share_of_core(examination, node);
    if (!known && all.is_low(on_free_cores))
      found.push_back(finding_about(
          examination, node, "bandwidth",
          fmt::format("its fastest link carries {:.0f} MB/s, and {:.0f} MB/s on the median node",
                      link.bytes_per_s / 1e6, all.usual / 1e6)));
  }
}

}  // namespace

bool is_suspicious(const LinkFacts& link) {
  return !link.problem.empty() || (link.retransmitted >= kFewRetransmits && link.loss() >= kMostLoss);
}

std::vector<std::pair<int, int>> narrow_links(const Examination& examination) {
  const Bandwidths all = bandwidths_of(examination);
  std::vector<std::pair<int, int>> narrow;
  for (const auto& [node, link] : all.fastest)
    if (all.is_low(link)) narrow.emplace_back(link.from, link.to);
  return narrow;
}

std::vector<DoctorFinding> judge_reach(const Examination& examination) {
  std::vector<std::pair<int, int>> cut;
  for (const Reach& reach : examination.reach)
    if (!reach.problem.empty()) cut.emplace_back(reach.from, reach.to);
  std::vector<DoctorFinding> found;
  for (const Culprit& culprit : find_culprits(cut)) {
    const int peer = culprit.peers.front();
    const Reach* const there = culprit.receives ? find_reach(examination, peer, culprit.node)
                                                : find_reach(examination, culprit.node, peer);
    const Reach* const back = find_reach(examination, there->to, there->from);
    const std::string way = culprit.receives
                                ? fmt::format("{} cannot connect to it", nodes_in_words(culprit.peers))
                                : fmt::format("it cannot connect to {}", nodes_in_words(culprit.peers));
    const bool one_way = back != nullptr && back->problem.empty();
    found.push_back(finding_about(
        examination, culprit.node, "firewall",
        fmt::format("{} ({}{})", way, there->problem, one_way ? "; the other direction works" : "")));
  }
  return found;
}

std::vector<DoctorFinding> judge_links(const Examination& examination) {
  std::vector<DoctorFinding> found;
  judge_loss(examination, found);
  judge_stalls(examination, found);
  judge_mtus(examination, found);
  judge_bandwidth(examination, found);
  return found;
}

}  // namespace fleetrun::launch
