// Who coordinates the run when its first node is lost: the next nodes of the last attempt have their turns, in its order.
// In its turn a node serves as the first one, and the others join it. Decides with times as arguments.
#pragma once
#include <chrono>
#include <optional>
#include <vector>

#include "launch/loop/clock.h"

namespace fleetrun::launch {

class Succession {
 public:
  // Nodes notice the loss at most 2 s apart: their last message is up to 1 s old (kNodeBeat), and they look once a
  // second.
  static constexpr auto kTurn = std::chrono::seconds(3);
  static constexpr int kMostTurns = 3;  // so that a node that is cut off ends soon

  // `nodes`: of the last attempt. `own_rank`: among them; none: this node had no place. `lost`: when this node noticed.
  Succession(int nodes, std::optional<int> own_rank, TimePoint lost);

  struct Plan {
    bool serve = false;    // this node serves, and joins itself
    std::vector<int> ask;  // ranks of the nodes to join otherwise; the first that answers is the one
    bool gave_up = false;  // nobody answered
  };
  Plan plan(TimePoint now) const;
  void pass_own_turn() { own_rank_.reset(); }  // this node cannot serve

 private:
  const int turns_;
  std::optional<int> own_rank_;
  const TimePoint lost_;
};

}  // namespace fleetrun::launch
