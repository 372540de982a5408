#include "launch/nodes/succession.h"

#include <algorithm>

namespace fleetrun::launch {

Succession::Succession(int nodes, std::optional<int> own_rank, TimePoint lost)
    : turns_(std::min(nodes - 1, kMostTurns)), own_rank_(own_rank), lost_(lost) {}

Succession::Plan Succession::plan(TimePoint now) const {
  const auto turn = static_cast<int>((now - lost_) / kTurn) + 1;  // of the node with this rank
  Plan plan;
  if (own_rank_ && *own_rank_ >= 1 && *own_rank_ <= std::min(turn, turns_)) {
    plan.serve = true;
    return plan;
  }
  plan.gave_up = turn > turns_ + 1;  // the last one's turn may have begun later
  for (int rank = 1; rank <= std::min(turn, turns_); ++rank) plan.ask.push_back(rank);
  return plan;
}

}  // namespace fleetrun::launch
