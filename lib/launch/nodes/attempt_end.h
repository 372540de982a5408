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
  // What somebody asked of this node, if no message came from the first node since: the other nodes probably do not know it. Null: there is nothing.
  const NodeFailure* unheard_wish(TimePoint received) const;

  // Why the run ends after the loss of the first node. `received` is the time of the last message from the first node. If the ranks had a
  // reason to end before the loss, this reason stays the cause, and the text names the loss after it. But the loss may have caused a failure
  // of this node: the failure tells of a lost connection, or no message came after the failure. Then the loss is the cause, and the text
  // names the failure first.
  NodeFailure before(NodeFailure loss, TimePoint received) const;

 private:
  struct Known {
    NodeFailure failure;
    bool is_told = false;
    TimePoint known = {};  // since when, if it happened here
  };
  bool may_follow_from_loss(TimePoint received) const;

  std::optional<Known> ending_;
  std::optional<Known> wish_;  // of this node
  bool is_wished_ = false;
};

}  // namespace fleetrun::launch
