// The Coordinator's decisions when another node takes over from the first one, and whether enough nodes agree.
#include <algorithm>
#include <climits>

#include <fmt/format.h>

#include "base/error/error.h"
#include "base/text/plural.h"
#include "launch/nodes/coordinator.h"
#include "launch/supervise/exit_cause.h"

namespace fleetrun::launch {

// Those that would take part in the next attempt, and those that cannot take part in another one any more.
std::optional<MissingQuorum> Coordinator::missing_quorum() const {
  if (!options_.elastic()) return std::nullopt;
  std::vector<AttemptsSeen> here = ended_nodes_;
  for (const Node& node : nodes_)
    if (node.state != State::lost) here.push_back(node.seen);
  if (phase_ == Phase::taking_over)
    for (const Node& node : waiting_) here.push_back(node.seen);
  return launch::missing_quorum(here);
}

NodeFailure Coordinator::without_quorum(NodeFailure failure, const MissingQuorum& missing) const {
  const std::string needed = options_.takes_over && phase_ == Phase::taking_over ? "more than half of them"
                                                                                 : "at least half of them";
  failure.cause = "node_lost";
  failure.exit_code = static_cast<int>(ErrorKind::temporary);
  failure.line += fmt::format(
      "; only {} of the {} of attempt {} {} here, and {} must be, because the others may go on", missing.here,
      plural(missing.nodes, "node"), missing.attempt, missing.here == 1 ? "is" : "are", needed);
  failure.block = fmt::format("fleetrun: {}\n", failure.line);
  return failure;
}

Coordinator::Actions Coordinator::take_over_if_all_have_come(TimePoint now) {
  const auto survivors = std::ranges::count_if(waiting_, [](const Node& node) { return !node.is_new; });
  const bool has_own = std::ranges::any_of(waiting_, [](const Node& node) { return node.join.coordinates; });
  const int expected = std::min(options_.takes_over->survivors + options_.spares, options_.most_running());
  const bool all = survivors >= options_.takes_over->survivors && std::ssize(waiting_) >= expected;
  const bool enough = std::ssize(waiting_) >= options_.least_running() && !missing_quorum();
  const bool had_time = now >= began_ + options_.takes_over->meet;
  const auto missing = options_.takes_over->survivors - survivors;
  if (wish_) return missing <= 0 || had_time ? end_by_wish(static_cast<int>(missing)) : Actions();
  return has_own && enough && (all || had_time) ? take_over(now) : Actions();
}

// A quorum may wait for nodes that come.
Coordinator::Actions Coordinator::wake_while_taking_over(TimePoint now) {
  const TimePoint last = began_ + options_.takes_over->meet + options_.elastic_timeout;
  NodeFailure failure = options_.takes_over->loss;
  if (wish_) return take_over_if_all_have_come(now);
  if (const auto quorum = missing_quorum()) return end(without_quorum(failure, *quorum), std::nullopt);
  if (Actions actions = take_over_if_all_have_come(now); !actions.empty()) return actions;
  if (now < last) {
    begin_by_ = last;
    return tell_wait_for_nodes();
  }
  failure.block +=
      fmt::format("fleetrun: {} left, and the run needs {} (--nnodes)\n",
                  waiting_.size() == 1 ? "1 node is" : fmt::format("{} nodes are", waiting_.size()),
                  options_.least_running());
  return end(failure, std::nullopt);
}

Coordinator::Actions Coordinator::tell_wait_for_nodes() const {
  const int missing = options_.least_running() - static_cast<int>(waiting_.size());
  if (missing <= 0) return {};
  const std::string wanted = plural(missing, "node");
  return tell_everybody(
      Note{fmt::format("{}; waiting {:g} s for {} to join (--elastic_timeout)",
                       options_.takes_over->loss.line, in_seconds(options_.elastic_timeout), wanted),
           wanted});
}

// This node becomes the first one, and the others keep their order.
Coordinator::Actions Coordinator::take_over(TimePoint now) {
  const auto place_before = [](const Node& node) {
    const auto last = node.seen.last();
    if (node.join.coordinates) return -1;
    return last ? last->node_rank : INT_MAX;
  };
  std::ranges::stable_sort(waiting_, {}, place_before);
  std::vector<AttemptsSeen> seen;
  for (const Node& node : waiting_) seen.push_back(node.seen);
  attempt_ = last_attempt(seen);
  standing_.why = options_.takes_over->loss.line;
  standing_.first_node = address_of(waiting_.front());
  standing_.detection = options_.takes_over->detection;
  stop_began_ = began_;
  ended_ = now;
  if (!restarts_.after_loss(now)) return end(without_restart(options_.takes_over->loss), std::nullopt);
  ending_ = options_.takes_over->loss;
  ending_->block.clear();
  return begin_next({}, now);
}

Coordinator::Actions Coordinator::end_by_wish(int missing) {
  NodeFailure failure = *wish_;
  if (missing > 0) {
    failure.line += fmt::format("; {} did not hear of it, and may go on", plural(missing, "node"));
    failure.block = fmt::format("fleetrun: {}\n", failure.line);
  }
  return end(failure, std::nullopt);
}

// The end of a rank follows from the loss of the first node, or comes too late to matter. What somebody asked for counts, when the other nodes
// have come to hear of it.
Coordinator::Actions Coordinator::fail_while_taking_over(PeerId peer, const NodeFailure& failure,
                                                         TimePoint now) {
  const auto is_there = [&](const Node& node) { return node.peer == peer; };
  const auto cause = cause_called(failure.cause);
  const bool is_wish = cause == Cause::stopped || cause == Cause::timed_out;
  if (!is_wish || std::ranges::none_of(waiting_, is_there)) return {};
  wish_ = wish_.value_or(failure);
  return take_over_if_all_have_come(now);
}

Coordinator::Actions Coordinator::end_while_taking_over(PeerId peer, const Ended& ended, TimePoint now) {
  if (ended.failure)
    if (Actions actions = fail_while_taking_over(peer, *ended.failure, now); !actions.empty()) return actions;
  if (!ended.no_restart) return {};
  wish_ = wish_.value_or(wish_between_attempts(ended.asked_by));
  return take_over_if_all_have_come(now);
}

}  // namespace fleetrun::launch
