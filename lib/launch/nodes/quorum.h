// When nodes that have met may begin another attempt, so that two parts of a broken network never both go on.
//
// They must be a quorum of the last attempt that one of them saw start, and of each later attempt for which one of them
// was ready: it may have started on other nodes. A quorum of an attempt is more than half of its nodes, or half of them
// with its first node. So any two quorums have a node in common.
//
// A node is ready for attempts with ever larger numbers only, and counts as ready from the moment it gets its place. Hence, if an attempt has started, each quorum that a later
// attempt needs has a node that was ready for it and knows about it.
#pragma once
#include <optional>
#include <vector>

namespace fleetrun::launch {

struct AttemptSeen {  // by one of its nodes
  int attempt = 0;
  int nodes = 0;      // that it has
  int node_rank = 0;  // of this node among them

  bool operator==(const AttemptSeen&) const = default;
};

// What one life of fleetrun on a node knows about the attempts in which it took part.
struct AttemptsSeen {
  std::optional<AttemptSeen> started;  // the last one that this node saw start
  std::vector<AttemptSeen> ready_for;  // later ones, which may have started elsewhere; ascending

  void be_ready(
      const AttemptSeen& attempt);  // does nothing when this node was ready for it, or for a later one
  void see_start(int attempt);
  std::optional<AttemptSeen> last() const;  // none: this node took part in no attempt

  bool operator==(const AttemptsSeen&) const = default;
};

// The largest number of an attempt that one of these nodes knows; -1: none.
int last_attempt(const std::vector<AttemptsSeen>& nodes);

// An attempt of which too few nodes are there.
struct MissingQuorum {
  int attempt = 0, nodes = 0, here = 0;
};
// Nothing: these nodes may begin another attempt.
std::optional<MissingQuorum> missing_quorum(const std::vector<AttemptsSeen>& nodes);

}  // namespace fleetrun::launch
