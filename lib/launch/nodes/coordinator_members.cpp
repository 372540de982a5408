// The Coordinator's decisions about which nodes take part in an attempt, and which wait.
#include <algorithm>
#include <csignal>
#include <span>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error/error.h"
#include "base/error/exit_codes.h"
#include "base/text/plural.h"
#include "launch/nodes/coordinator.h"
#include "launch/nodes/rank_order.h"
#include "launch/process/exit_status.h"
#include "launch/supervise/exit_cause.h"

namespace fleetrun::launch {
namespace {

// An attempt that has run this long has probably left its start behind, which would be lost.
constexpr auto kBeforeTakingIn = std::chrono::seconds(5);

}  // namespace

const Coordinator::Node* Coordinator::holder_of_place_in_run(const Node& node) const {
  const auto holder = std::ranges::find_if(nodes_, [&](const Node& one) {
    return node.join.node_rank && one.state != State::lost && one.join.node_rank == node.join.node_rank;
  });
  return holder == nodes_.end() ? nullptr : &*holder;
}

int Coordinator::candidates() const {
  return static_cast<int>(
      std::ranges::count_if(waiting_, [this](const Node& node) { return has_room_for(node); }));
}

int Coordinator::lacking() const {
  return options_.least_running() - static_cast<int>(nodes_.size()) - candidates();
}

// The nodes of the next attempt: those that are left of this one, then those that wait, while there is room.
void Coordinator::take_places() {
  std::erase_if(nodes_, [](const Node& node) { return node.state == State::lost; });
  for (auto node = waiting_.begin();
       node != waiting_.end() && std::ssize(nodes_) < options_.most_running();) {
    if (!has_room_for(*node)) {
      ++node;
      continue;
    }
    nodes_.push_back(std::move(*node));
    node = waiting_.erase(node);
  }
  std::vector<std::optional<int>> claims;
  for (const Node& node : nodes_) claims.push_back(node.join.node_rank);
  std::vector<Node> placed;
  for (const std::size_t node : rank_order(claims)) placed.push_back(std::move(nodes_[node]));
  std::stable_partition(placed.begin(), placed.end(), [](const Node& node) { return node.join.coordinates; });
  nodes_ = std::move(placed);
  if (options_.without_missing) add_missing();
}

// A node that has not joined counts as lost, and its place has no host name.
void Coordinator::add_missing() {
  for (int place = 0; place < options_.nodes; ++place) {
    if (place < std::ssize(nodes_) && nodes_[place].join.node_rank.value_or(place) <= place) continue;
    Node missing;
    missing.state = State::lost;
    if (place < std::ssize(options_.names)) missing.join.address = options_.names[place];
    nodes_.insert(nodes_.begin() + place, std::move(missing));
  }
}

Places Coordinator::places(TimePoint now) const {
  Places all = {
      .run_id = options_.run_id, .nodes = {}, .attempt = attempt_, .restarts = restarts_.restarts()};
  for (const Node& node : nodes_)
    all.nodes.push_back({node.join.address, node.join.host, node.join.logs, node.join.device_ids});
  const std::vector<Clock::duration> ages = restarts_.ages_inside_window(now);
  for (const auto age : std::span(ages).last(std::min(ages.size(), kMostRestartAges)))
    all.restart_ages.push_back(age / std::chrono::nanoseconds(1));
  if (options_.addresses.size() > 1) all.first_at = options_.addresses;
  return all;
}

// From now on the nodes may be ready for the attempt, and others may hear of that.
Coordinator::Actions Coordinator::tell_places(TimePoint now) {
  const auto count = static_cast<int>(nodes_.size());
  Actions actions;
  for (int rank = 0; rank < count; ++rank) {
    Node& node = nodes_[static_cast<std::size_t>(rank)];
    node.seen.be_ready({attempt_, count, rank});
    actions.push_back(Tell{{node.peer}, Place{rank}});
  }
  actions.push_back(tell_members(places(now)).front());
  std::vector<PeerId> others;
  for (const Node& node : waiting_) others.push_back(node.peer);
  if (!others.empty())
    for (auto& action : tell_places_to_waiting(others, now)) actions.push_back(std::move(action));
  return actions;
}

// So that they know who may take over.
Coordinator::Actions Coordinator::tell_places_to_waiting(const std::vector<PeerId>& peers,
                                                         TimePoint now) const {
  return {Tell{peers, Place{-1}}, Tell{peers, places(now)}};
}

Coordinator::Tell Coordinator::note_for_waiting(const Node& node) const {
  const bool full = std::ssize(nodes_) >= options_.most_running();
  if (const Node* const holder = holder_of_place_in_run(node))
    return {
        {node.peer},
        Note{fmt::format(
            "joined a run in which {} has claimed the number {}, too; this node waits until that is lost{}",
            name_of(*holder), *node.join.node_rank,
            full || !options_.names.empty() ? "" : ", or starts again without --node_rank")}};
  return {{node.peer},
          Note{fmt::format("joined a run that has its {}; this node {}", plural(nodes_.size(), "node"),
                           full || !options_.takes_in_while_running
                               ? "waits until a node is lost or the ranks start again"
                               : "gets ranks when the ranks start again, which is in some seconds")}};
}

// ---- Nodes that come during the run.

std::optional<TimePoint> Coordinator::take_in_at() const {
  const bool may = phase_ == Phase::running && options_.takes_in_while_running && !finished_ && !suspended_;
  if (!may || std::ssize(nodes_) >= options_.most_running() || candidates() == 0) return std::nullopt;
  return started_ + kBeforeTakingIn;
}

Coordinator::Actions Coordinator::take_in(TimePoint now) {
  std::vector<std::string> names;
  for (const Node& node : waiting_)
    if (has_room_for(node)) names.push_back(address_of(node));
  taking_in_ = true;
  phase_ = Phase::stopping;
  stop_began_ = now;
  standing_.why = fmt::format("the ranks start again to take in {}", fmt::join(names, "; "));
  return tell_members(Stop{standing_.why, static_cast<int>(ErrorKind::temporary), false});
}

// ---- Going on with other nodes.

Coordinator::Actions Coordinator::go_on(const NodeFailure& failure, Clock::duration delay, TimePoint now) {
  const bool stands_already = !standing_.why.empty();
  standing_.why += (stands_already ? "; then " : "") + failure.line;
  for (const std::string& loss : losses_after(failure)) standing_.why += "; then " + loss;
  const TimePoint happened{std::chrono::nanoseconds(failure.at)};
  if (!stands_already) standing_.detection = std::max(stop_began_ - happened, Clock::duration());
  std::vector<std::string> lost;
  for (const Node& node : nodes_)
    if (node.state == State::lost) lost.push_back(name_of(node));
  std::erase_if(nodes_, [](const Node& node) { return node.state == State::lost; });
  if (const auto quorum = missing_quorum()) return end(without_quorum(failure, *quorum), std::nullopt);
  const int missing = lacking();
  if (missing <= 0) return begin_next(delay, now);
  phase_ = Phase::gathering;
  lost_ = failure;
  begin_by_ = now + options_.elastic_timeout;
  const bool is_loss = failure.cause == facts_of(Cause::node_lost).name && lost.size() == 1;
  const std::string why =
      is_loss ? failure.line : fmt::format("{}; {} lost", failure.line, fmt::join(lost, ", "));
  const std::string wanted = plural(missing, "node");
  return tell_members(Note{fmt::format("{}; waiting {:g} s for {} to join (--elastic_timeout)", why,
                                       in_seconds(options_.elastic_timeout), wanted),
                           wanted});
}

// The run ends for another reason than the one for which it stands, which the user wants to know, too.
NodeFailure Coordinator::while_gathering(NodeFailure failure) const {
  failure.line += " while waiting for nodes to join after: " + lost_->line;
  failure.block = lost_->block + fmt::format("fleetrun: {}\n", failure.line);
  failure.evidence = lost_->evidence;
  return failure;
}

Coordinator::Actions Coordinator::go_on_if_enough(TimePoint now) {
  return lacking() > 0 ? Actions() : begin_next({}, now);
}

Coordinator::Actions Coordinator::give_up_gathering() {
  NodeFailure failure = *lost_;
  failure.block += fmt::format("fleetrun: {} left, and the run needs {} (--nnodes)\n",
                               nodes_.size() == 1 ? "1 node is" : fmt::format("{} nodes are", nodes_.size()),
                               options_.least_running());
  return end(failure, std::nullopt);
}

// A signal, or 0: --timeout, forbids another attempt, while the ranks end so that a node can be taken in, or while another node takes over.
NodeFailure Coordinator::wish_between_attempts(int signal) {
  const Cause cause = signal != 0 ? Cause::stopped : Cause::timed_out;
  const std::string why = signal != 0 ? "stopped by " + describe_signal(signal) : "--timeout has passed";
  const std::string line = why + " while the ranks were starting again";
  return {.cause = std::string(facts_of(cause).name),
          .line = line,
          .block = fmt::format("fleetrun: {}\n", line),
          .exit_code = signal != 0 ? kSignalExitCode + signal : static_cast<int>(ErrorKind::timeout),
          .signal = signal};
}

// Nodes that were in the last attempt are told so; for the others the places say which attempt it is.
Coordinator::Actions Coordinator::begin_next(Clock::duration delay, TimePoint now) {
  const int left = static_cast<int>(
      std::ranges::count_if(nodes_, [](const Node& node) { return node.state != State::lost; }));
  if (left + candidates() < options_.least_running())  // a node was lost after its ranks had ended
    return end(
        failure_of_nodes(ErrorKind::temporary, fmt::format("{} left, and the run needs {} (--nnodes)",
                                                           plural(left, "node"), options_.least_running())),
        std::nullopt);
  if (const auto quorum = missing_quorum())
    return end(without_quorum(failure_of_nodes(ErrorKind::temporary, "too few nodes are left"), *quorum),
               std::nullopt);
  ++attempt_;
  phase_ = Phase::preparing;
  start_at_ = now + delay;
  standing_.pause = std::min(standing_.pause, now - ended_) + delay;
  standing_.stop = ended_ - stop_began_;
  taking_in_ = false;
  asked_by_ = 0;
  begin_by_.reset();
  if (ending_) ending_->evidence = {};
  Tell again = {.to = {},
                .message = Again{attempt_, std::chrono::nanoseconds(delay).count(), restarts_.restarts(),
                                 std::exchange(ending_, std::nullopt)}};
  for (Node& node : nodes_) node.is_new = false;
  Actions actions;
  if (options_.elastic()) {
    const std::size_t before = nodes_.size();
    take_places();
    if (nodes_.size() != before) restarts_.forget_steps();
    actions = tell_places(now);
  }
  for (Node& node : nodes_) {
    node.state = State::joined;
    node.failure.reset();
    node.earlier = {};
    node.step.reset();
    node.finished = false;
    if (!node.is_new) again.to.push_back(node.peer);
  }
  actions.emplace_back(std::move(again));
  return actions;
}

}  // namespace fleetrun::launch
