#include "launch/nodes/quorum.h"

#include <algorithm>
#include <map>
#include <set>

namespace fleetrun::launch {
namespace {

struct Attendance {
  int nodes = 0;       // of the attempt
  std::set<int> here;  // their ranks

  bool is_quorum() const {
    const int twice = 2 * static_cast<int>(here.size());
    return twice > nodes || (twice == nodes && here.contains(0));
  }
};

int last_start(const std::vector<AttemptsSeen>& nodes) {
  int last = -1;
  for (const AttemptsSeen& node : nodes)
    if (node.started) last = std::max(last, node.started->attempt);
  return last;
}

}  // namespace

void AttemptsSeen::be_ready(const AttemptSeen& attempt) {
  const auto before = last();
  if (!before || before->attempt < attempt.attempt) ready_for.push_back(attempt);
}

void AttemptsSeen::see_start(int attempt) {
  for (const AttemptSeen& one : ready_for)
    if (one.attempt == attempt) started = one;
  std::erase_if(ready_for, [&](const AttemptSeen& one) { return one.attempt <= attempt; });
}

std::optional<AttemptSeen> AttemptsSeen::last() const {
  return ready_for.empty() ? started : std::optional(ready_for.back());
}

int last_attempt(const std::vector<AttemptsSeen>& nodes) {
  int last = -1;
  for (const AttemptsSeen& node : nodes)
    if (const auto own = node.last()) last = std::max(last, own->attempt);
  return last;
}

std::optional<MissingQuorum> missing_quorum(const std::vector<AttemptsSeen>& nodes) {
  const int start = last_start(nodes);
  std::map<int, Attendance> attempts;
  const auto add = [&](const AttemptSeen& one) {
    if (one.attempt < start) return;
    attempts[one.attempt].nodes = one.nodes;
    attempts[one.attempt].here.insert(one.node_rank);
  };
  for (const AttemptsSeen& node : nodes) {
    if (node.started) add(*node.started);
    for (const AttemptSeen& one : node.ready_for) add(one);
  }
  for (const auto& [number, attempt] : attempts)
    if (!attempt.is_quorum())
      return MissingQuorum{number, attempt.nodes, static_cast<int>(attempt.here.size())};
  return std::nullopt;
}

}  // namespace fleetrun::launch
