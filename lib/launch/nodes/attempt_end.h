// Why the ranks of a node end in an attempt, and which cause the run has if the first node is lost meanwhile.
#pragma once
#include <optional>

#include "launch/loop/clock.h"
#include "launch/nodes/node_messages.h"

namespace fleetrun::launch {

class AttemptEnd {
 public:
  // A failure of this node, or what somebody asked of it, which it tells the first node `now`.
  void happened_here(const NodeFailure& failure, TimePoint now);
  // The same failure, now with the end of the log of its rank.
  void know_more(const NodeFailure& failure);
  // The first node says so.
  void was_told(const Stop& stop);
  void forget() { ending_.reset(); }  // a new attempt begins

  const NodeFailure* failure() const { return ending_ ? &ending_->failure : nullptr; }

  // The first node is lost, and was last heard at `heard`. What the ranks end for stays the cause, and the loss is told after it, unless it may
  // follow from the loss: it is a failure of this node about a lost connection, or the first node was not heard after it. Then the result is
  // the loss, whose text tells of the failure, too.
  NodeFailure before(NodeFailure loss, TimePoint heard) const;

 private:
  struct Known {
    NodeFailure failure;
    bool is_told = false;
    TimePoint known = {};  // since when, if it happened here
  };
  bool may_follow_from_loss(TimePoint heard) const;

  std::optional<Known> ending_;
};

}  // namespace fleetrun::launch
