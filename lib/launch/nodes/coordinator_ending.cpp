// How an attempt or the run ends: failures, lost nodes, and whether the ranks start again.
#include "launch/nodes/coordinator.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error/error.h"
#include "launch/evidence/lost_peer.h"
#include "launch/supervise/exit_cause.h"

namespace fleetrun::launch {
namespace {

constexpr auto kNewsTakes = std::chrono::milliseconds(20);  // from the end of a node to our clock, at most

// By how many nanoseconds the failure may have happened before its time. That of a loss is the earliest possible one.
std::int64_t uncertainty_of(const NodeFailure& failure) {
  return failure.cause == facts_of(Cause::node_lost).name ? 0 : failure.error;
}

bool is_after(const NodeFailure& other, const NodeFailure& failure) {
  return other.at - failure.at > uncertainty_of(other) + failure.error;
}

// Of a mistake that another start would repeat: wrong files, data or settings on a node.
bool is_of_a_node(int exit_code) {
  constexpr std::array<ErrorKind, 6> kKinds = {ErrorKind::config,         ErrorKind::data,
                                               ErrorKind::missing,        ErrorKind::not_found,
                                               ErrorKind::not_executable, ErrorKind::permission};
  return std::ranges::any_of(kKinds, [&](ErrorKind kind) { return exit_code == static_cast<int>(kind); });
}

}  // namespace

Coordinator::Actions Coordinator::handle(PeerId peer, const Failed& failed, TimePoint now) {
  Node* const node = find(peer);
  if (node == nullptr && phase_ == Phase::joining) return fail_while_joining(peer, failed, now);
  if (phase_ == Phase::taking_over) return fail_while_taking_over(peer, failed.failure, now);
  if (node == nullptr || phase_ == Phase::over) return {};
  if (failed.attempt != attempt_ && !ends_between_attempts(*node, failed)) return {};
  const auto cause = cause_called(failed.failure.cause);
  const bool goes = leaves(*node, failed.failure);
  if (goes) node->departure = failed.failure;
  if (!goes && (!cause || !facts_of(*cause).restarts))
    restarts_.forbid();  // also when another failure was the first
  if (!node->failure || failed.failure.at < node->failure->at) set_failure(*node, failed.failure);
  const bool runs = phase_ == Phase::running || phase_ == Phase::stopping;
  if (!runs && !goes)
    return end(phase_ == Phase::gathering ? while_gathering(failed.failure) : failed.failure,
               static_cast<int>(node - nodes_.data()));
  Actions actions = runs ? stop(failed.failure, peer, now) : Actions();
  if (goes && (!runs || node->state == State::ended))
    for (auto& action : dismiss(*node, now)) actions.push_back(std::move(action));
  return actions;
}

// The node has not read yet that the next attempt is prepared. What its ranks did concerns the attempt before.
bool Coordinator::ends_between_attempts(const Node& node, const Failed& failed) const {
  const auto cause = cause_called(failed.failure.cause);
  const bool ends_run = cause == Cause::stopped || cause == Cause::timed_out || cause == Cause::front_lost;
  return ends_run && phase_ == Phase::preparing && node.state == State::joined &&
         failed.attempt == attempt_ - 1;
}

// If the fleetrun of a node fails in an elastic run, the other nodes continue without it. They cannot continue without the first node.
bool Coordinator::leaves(const Node& node, const NodeFailure& failure) const {
  const auto cause = cause_called(failure.cause);
  const bool of_node = !cause || *cause == Cause::front_lost || *cause == Cause::node_lost;
  return options_.elastic() && of_node && &node != &nodes_.front();
}

void Coordinator::set_failure(Node& node, const NodeFailure& failure) {
  node.failure = failure;
  if (leaves(node, failure)) node.failure->cause = "node_lost";
}

// Of a node with a departure.
Coordinator::Actions Coordinator::dismiss(Node& node, TimePoint now) {
  const NodeFailure failure = *node.departure;
  Actions actions = {Tell{{node.peer}, Over{failure, static_cast<int>(&node - nodes_.data())}},
                     Drop{node.peer, failure.line}};
  ended_nodes_.push_back(node.seen);
  for (auto& action : lose(node, failure, now)) actions.push_back(std::move(action));
  return actions;
}

Coordinator::Actions Coordinator::stop(const NodeFailure& failure, PeerId failed, TimePoint now) {
  if (phase_ == Phase::stopping) return {};
  phase_ = Phase::stopping;
  stop_began_ = now;
  const auto cause = cause_called(failure.cause);
  return tell_others(failed, Stop{failure.line, failure.exit_code, cause && is_of_all_ranks(*cause),
                                  failure.signal, failure.cause, failure.rank});
}

Coordinator::Actions Coordinator::handle(PeerId peer, const Hurry& hurry, TimePoint) {
  if (phase_ != Phase::stopping || hurry.attempt != attempt_) return {};
  return tell_others(peer, hurry);
}

Coordinator::Actions Coordinator::handle(PeerId peer, const Ended& ended, TimePoint now) {
  Node* const node = find(peer);
  if (phase_ == Phase::taking_over) return end_while_taking_over(peer, ended, now);
  if (node != nullptr && phase_ == Phase::preparing && ended.no_restart)
    return end(wish_between_attempts(ended.asked_by), std::nullopt);  // it took over
  if (node == nullptr || ended.attempt != attempt_ || phase_ == Phase::over) return {};
  node->state = State::ended;
  node->ended = now;
  node->finished = ended.finished;
  node->step = ended.step;
  if (ended.failure && leaves(*node, *ended.failure)) node->departure = ended.failure;
  if (ended.no_restart && !node->departure) {
    restarts_.forbid();
    if (asked_by_ == 0) asked_by_ = ended.asked_by;
  }
  node->ranks = ended.ranks;
  node->roll_call = ended.roll_call;
  node->earlier = ended.earlier;
  Actions actions;
  if (ended.failure) {
    set_failure(*node, *ended.failure);
    actions = stop(*ended.failure, peer, now);
  }
  if (node->departure)
    for (auto& action : dismiss(*node, now)) actions.push_back(std::move(action));
  for (auto& action : conclude_if_all_ended(now)) actions.push_back(std::move(action));
  return actions;
}

Coordinator::Actions Coordinator::lost(PeerId peer, const std::string& why, TimePoint last_heard,
                                       TimePoint now, bool ended) {
  if (std::erase_if(waiting_, [&](const Node& one) { return one.peer == peer; }) > 0)  // it may come again
    return phase_ == Phase::joining ? begin_if_enough(now) : Actions();
  Node* const node = find(peer);
  if (node == nullptr || phase_ == Phase::over) return {};
  if (ended) ended_nodes_.push_back(node->seen);
  const std::string line =
      fmt::format("lost {}: {}; last heard {:.1f} s ago", name_of(*node), why, in_seconds(now - last_heard));
  NodeFailure failure = failure_of_nodes(ErrorKind::temporary, line);
  failure.cause = "node_lost";
  // If the kernel of the node closed the connection, the node worked until then. A silent node may have failed at any time before its next beat
  // was due.
  const TimePoint earliest = ended ? std::max(last_heard, now - kNewsTakes) : last_heard;
  const TimePoint latest = ended ? now : std::min(now, last_heard + kNodeBeat);
  failure.at = earliest.time_since_epoch() / std::chrono::nanoseconds(1);
  failure.error = (latest - earliest) / std::chrono::nanoseconds(1);
  return lose(*node, failure, now);
}

// Nobody can type `fg` there any more. The next attempt replaces the times of this one.
Coordinator::Actions Coordinator::end_suspension_by(PeerId lost) {
  if (suspended_by_.erase(lost) == 0 || !suspended_by_.empty()) return {};
  suspended_.reset();
  return options_.elastic() ? tell_members(Signalled{attempt_, SIGCONT}) : Actions();
}

// A node that has ended its ranks before cannot be the cause any more.
Coordinator::Actions Coordinator::lose(Node& node, const NodeFailure& failure, TimePoint now) {
  const bool had_ended = std::exchange(node.state, State::lost) == State::ended && !node.failure;
  Actions actions = end_suspension_by(node.peer);
  const auto add = [&actions](Actions more) {
    for (auto& action : more) actions.push_back(std::move(action));
  };
  if (phase_ == Phase::gathering) {
    std::erase_if(nodes_, [](const Node& one) { return one.state == State::lost; });
    return actions;
  }
  if (!had_ended && !node.failure)
    node.failure = failure;
  else if (!node.departure)
    node.loss = failure;
  if (phase_ == Phase::preparing) {
    if (!options_.elastic()) return end(node.failure, static_cast<int>(&node - nodes_.data()));
    if (attempt_ == 0) stop_began_ = ended_ = now;  // later, no rank works since the attempt before
    add(go_on_or_end(now));
    return actions;
  }
  if (!had_ended) add(stop(failure, node.peer, now));
  add(conclude_if_all_ended(now));
  return actions;
}

Coordinator::Actions Coordinator::conclude_if_all_ended(TimePoint now) {
  if (phase_ != Phase::running && phase_ != Phase::stopping) return {};
  const bool ended = std::all_of(nodes_.begin(), nodes_.end(), [](const Node& node) {
    return node.state == State::ended || node.state == State::lost;
  });
  return ended ? conclude(now) : Actions();
}

std::optional<int> Coordinator::first_to_fail() const {
  std::optional<int> first;
  for (int i = 0; i < std::ssize(nodes_); ++i) {
    const auto& failure = nodes_[static_cast<std::size_t>(i)].failure;
    if (failure && (!first || failure->at < nodes_[static_cast<std::size_t>(*first)].failure->at)) first = i;
  }
  return first;
}

std::optional<std::int64_t> Coordinator::highest_step() const {
  std::optional<std::int64_t> highest;
  for (const Node& node : nodes_) highest = std::max(highest, node.step);  // none is below all numbers
  return highest;
}

Coordinator::Actions Coordinator::conclude(TimePoint now) {
  ended_ = now;
  return go_on_or_end(now);
}

Coordinator::Actions Coordinator::go_on_or_end(TimePoint now) {
  const std::optional<int> first = first_to_fail();
  const bool finished = std::ranges::all_of(nodes_, [](const Node& node) { return node.finished; });
  if (!first && taking_in_ && !finished)
    return restarts_.forbidden() ? end(wish_between_attempts(asked_by_), std::nullopt) : begin_next({}, now);
  if (!first) return end(std::nullopt, std::nullopt);
  NodeFailure failure = *nodes_[static_cast<std::size_t>(*first)].failure;
  ending_ = failure;
  ending_->block.clear();
  for (int i = 0; i < std::ssize(nodes_); ++i) {
    const auto& other = nodes_[static_cast<std::size_t>(i)].failure;
    if (i == *first || !other || is_after(*other, failure)) continue;
    if (other->line == failure.line) continue;  // of all nodes, such as --timeout
    const std::string line =
        fmt::format("fleetrun: {} at the same time: the nodes can compare times only to within {:.1f} ms\n",
                    other->line, static_cast<double>(uncertainty_of(*other) + failure.error) / 1e6);
    failure.block += line;
    ending_->block += line;
  }
  for (const std::string& loss : losses_after(failure)) {
    failure.block += fmt::format("fleetrun: then {}\n", loss);
    ending_->block += fmt::format("fleetrun: then {}\n", loss);
  }
  add_earlier_error(*first, failure);
  if (const auto unfit = unfit_newcomers(*first, failure); !unfit.empty())
    return go_on_without(unfit, failure, now);
  if (!may_start_again(failure)) return end(without_nodes(failure), first);
  if (lost_any() && worth_restarting(options_.restart, failure.exit_code)) {
    if (!restarts_.after_loss(now)) return end(without_restart(failure), first);
    return go_on(failure, {}, now);
  }
  const auto delay = restarts_.after(failure.exit_code, now - started_, now, highest_step());
  if (delay) return go_on(failure, *delay, now);
  if (!restarts_.crash_loop()) return end(failure, first);
  failure.exit_code = static_cast<int>(ErrorKind::gave_up);
  return end(failure, first, true);
}

// find_earlier_error() chooses among the ranks of one node in the same way: an error that nobody caught comes before the others, and the oldest one
// comes first. A node that had finished could not compare the time of its error with that of the failure, so this function does.
const EarlierWords* Coordinator::earlier_words(int first, const NodeFailure& failure) const {
  const auto in_order = [](const EarlierWords& words) { return std::pair(words.may_be_caught, words.at); };
  const EarlierWords* best = nullptr;
  for (int i = 0; i < std::ssize(nodes_); ++i) {
    const Node& node = nodes_[static_cast<std::size_t>(i)];
    const bool is_old = node.finished && std::chrono::nanoseconds(failure.at - node.earlier.at) > kFreshError;
    if (i == first || node.earlier.line.empty() || is_old) continue;
    if (best == nullptr || in_order(node.earlier) < in_order(*best)) best = &node.earlier;
  }
  return best;
}

// The rank that failed had lost the connection to a rank of another node, which had an error.
void Coordinator::add_earlier_error(int first, NodeFailure& failure) {
  const JsonValue* const exception = failure.evidence.find("exception", JsonValue::Kind::text);
  if (exception == nullptr || !may_tell_of_lost_peer(exception->text)) return;
  const EarlierWords* const words = earlier_words(first, failure);
  if (words == nullptr) return;
  failure.line += "; " + words->line;
  failure.block += words->block;
  if (JsonMember* const told = failure.evidence.find("earlier_error")) told->value = words->json;
  ending_->block += words->block;
}

// The nodes that were taken in for this attempt and cannot take part. Either their own ranks say so, or the ranks have compared their data, and
// the error names the nodes.
std::vector<Coordinator::Node*> Coordinator::unfit_newcomers(int first, const NodeFailure& failure) {
  if (!options_.elastic() || attempt_ == 0 || restarts_.forbidden() ||
      cause_called(failure.cause) != Cause::exited)
    return {};
  const auto is_newcomer = [this](const Node& node) {
    return node.first_attempt == attempt_ && node.state != State::lost;
  };
  std::vector<Node*> newcomers, named;
  for (Node& node : nodes_) {
    if (!is_newcomer(node)) continue;
    newcomers.push_back(&node);
    const std::string name = fmt::format("node {}, {}", &node - nodes_.data(), node.join.host);
    if (failure.block.find(name) != std::string::npos) named.push_back(&node);
  }
  const auto left = std::ranges::count_if(nodes_, [](const Node& node) { return node.state != State::lost; });
  if (std::ssize(newcomers) == left) return {};
  if (failure.exit_code == static_cast<int>(ErrorKind::protocol)) return named.empty() ? newcomers : named;
  Node& failed = nodes_[static_cast<std::size_t>(first)];
  if (!is_of_a_node(failure.exit_code) || !is_newcomer(failed)) return {};
  return {&failed};
}

Coordinator::Actions Coordinator::go_on_without(const std::vector<Node*>& unfit, const NodeFailure& failure,
                                                TimePoint now) {
  Actions actions;
  std::vector<std::string> names;
  for (Node* const node : unfit) {
    actions.push_back(Tell{{node->peer}, Over{failure, static_cast<int>(node - nodes_.data())}});
    actions.push_back(Drop{node->peer, failure.line});
    names.push_back(address_of(*node));
    ended_nodes_.push_back(node->seen);
    node->state = State::lost;
  }
  ending_->block += fmt::format(
      "fleetrun: the run goes on without {}, which does not match the other nodes\n", fmt::join(names, "; "));
  for (auto& action : go_on(failure, {}, now)) actions.push_back(std::move(action));
  return actions;
}

NodeFailure Coordinator::without_restart(NodeFailure failure) const {
  if (!restarts_.forbidden()) failure.block += no_restart_is_left(options_.restart);
  return failure;
}

// A run that is not elastic cannot start again without one of its nodes.
NodeFailure Coordinator::without_nodes(NodeFailure failure) const {
  const auto cause = cause_called(failure.cause);
  const bool would_start_again = cause && facts_of(*cause).restarts && options_.restart.most > 0 &&
                                 !restarts_.forbidden() &&
                                 worth_restarting(options_.restart, failure.exit_code);
  if (would_start_again && lost_any())
    failure.block += "fleetrun: no restart, because the run needs all its nodes\n";
  return failure;
}

// Losses that may have happened at the same time have another line.
std::vector<std::string> Coordinator::losses_after(const NodeFailure& failure) const {
  std::vector<std::string> losses;
  for (const Node& node : nodes_) {
    const bool is_loss = node.failure && node.failure->cause == facts_of(Cause::node_lost).name;
    const NodeFailure* const loss = node.loss ? &*node.loss : is_loss ? &*node.failure : nullptr;
    if (loss != nullptr && is_after(*loss, failure)) losses.push_back(loss->line);
  }
  return losses;
}

bool Coordinator::may_start_again(const NodeFailure& failure) const {
  const auto cause = cause_called(failure.cause);
  if (!cause || (lost_any() && !options_.elastic())) return false;
  return facts_of(*cause).restarts || (*cause == Cause::node_lost && options_.elastic());
}

bool Coordinator::lost_any() const {
  return std::ranges::any_of(nodes_, [](const Node& node) { return node.state == State::lost; });
}

Coordinator::Actions Coordinator::end(std::optional<NodeFailure> failure, std::optional<int> node,
                                      bool gave_up) {
  if (phase_ == Phase::joining || phase_ == Phase::taking_over) not_begun_ = failure;
  phase_ = Phase::over;
  return tell_everybody(Over{std::move(failure), node, gave_up});
}

}  // namespace fleetrun::launch
