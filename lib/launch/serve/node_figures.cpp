#include "launch/serve/node_figures.h"

#include <algorithm>
#include <utility>

#include "base/json/json_reader.h"
#include "launch/loop/timer.h"
#include "launch/nodes/places.h"
#include "launch/serve/figures_json.h"

namespace fleetrun::launch {
namespace {

constexpr auto kLastState = std::chrono::seconds(1);

}  // namespace

NodeFigures::NodeFigures(EventLoop& loop, NodeSession* nodes) : loop_(loop), nodes_(nodes) { renumber(); }

void NodeFigures::renumber() {
  if (nodes_ == nullptr || !nodes_->is_first()) return;
  const Placed& placed = nodes_->placed();
  ranks_.assign(static_cast<std::size_t>(world_of(placed) - ranks_of_node(placed, 0).count), {});
  asked_.assign(placed.nodes.size(), false);
  ++generation_;
}

void NodeFigures::begin() {
  if (asked_.empty() || std::exchange(begun_, true)) return;
  ask_all();
  loop_.call_every(kEvery, [this] { ask_all(); });
}

void NodeFigures::finish() {
  if (!begun_) return;
  ask_all();
  bool late = false;
  Timer deadline(loop_);
  deadline.call_at(Clock::now() + kLastState, [&late] { late = true; });
  while (!late && std::find(asked_.begin(), asked_.end(), true) != asked_.end()) loop_.run_one();
}

void NodeFigures::ask_all() {
  static const std::string request = to_json(JsonValue::object({{"do", "figures"}}));
  for (std::size_t node = 1; node < asked_.size(); ++node) {
    if (asked_[node]) continue;
    asked_[node] = true;
    const int number = static_cast<int>(node);
    nodes_->ask(number, request, "fleetrun",
                [this, number, generation = generation_](const std::optional<std::string>& answer) {
                  if (generation == generation_) take(number, answer);
                });
  }
}

// What a silent node said last goes on to count, but for its ranks being up.
void NodeFigures::take(int node, const std::optional<std::string>& answer) {
  asked_[static_cast<std::size_t>(node)] = false;
  const Placed& placed = nodes_->placed();
  const RankRange range = ranks_of_node(placed, node);
  const auto figures = answer ? read_figures(read_json(*answer).root) : std::vector<RankMetrics>();
  const auto first = static_cast<std::size_t>(range.first - ranks_of_node(placed, 0).count);
  for (std::size_t rank = 0; std::cmp_less(rank, range.count); ++rank) {
    RankMetrics& known = ranks_[first + rank];
    if (rank < figures.size())
      known = figures[rank];
    else
      known.up = false;
  }
}

}  // namespace fleetrun::launch
