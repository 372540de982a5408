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
  // The ranks of this node have ended: the same failure with the end of the log of its rank, and whether somebody asked for an end.
  void know_more(const Ended& ended);
  // The first node says so.
  void was_told(const Stop& stop);
  void forget() { *this = {}; }  // a new attempt begins

  const NodeFailure* failure() const { return ending_ ? &ending_->failure : nullptr; }  // the first one
  bool is_wished() const { return is_wished_; }  // somebody asked for the end, perhaps after a failure

  // The first node is lost, and something from it came last at `received`. What the ranks end for stays the cause, and the loss is told after
  // it, unless it may follow from the loss: it is a failure of this node about a lost connection, or nothing came after it. Then the result
  // is the loss, whose text tells of the failure, too.
  NodeFailure before(NodeFailure loss, TimePoint received) const;

 private:
  struct Known {
    NodeFailure failure;
    bool is_told = false;
    TimePoint known = {};  // since when, if it happened here
  };
  bool may_follow_from_loss(TimePoint received) const;

  std::optional<Known> ending_;
  bool is_wished_ = false;
};

}  // namespace fleetrun::launch
