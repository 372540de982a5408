#include "launch/nodes/coordinator.h"

#include <algorithm>
#include <csignal>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error/error.h"
#include "base/text/plural.h"
#include "launch/supervise/exit_cause.h"

namespace fleetrun::launch {
namespace {

constexpr std::size_t kMostRefused = 16;  // addresses that are named

}  // namespace

NodeFailure Coordinator::failure_of_nodes(ErrorKind kind, const std::string& line) {
  return {.cause = "nodes",
          .line = line,
          .block = "fleetrun: " + line + "\n",
          .exit_code = static_cast<int>(kind)};
}

Coordinator::Coordinator(CoordinatorOptions options, TimePoint now)
    : options_(std::move(options)),
      restarts_(options_.restart, options_.takes_over ? options_.takes_over->restarts : 0),
      began_(now),
      next_note_(now + options_.note_every) {
  if (!options_.takes_over) return;
  phase_ = Phase::taking_over;
  terms_ = options_.takes_over->terms;
  begin_by_ = now + options_.takes_over->meet;
}

Coordinator::Actions Coordinator::on(PeerId peer, const FromNode& message, TimePoint now) {
  return std::visit([&](const auto& one) { return handle(peer, one, now); }, message);
}

Coordinator::Actions Coordinator::handle(PeerId peer, const Beat& beat, TimePoint now) {
  return {Tell{{peer}, Echo{beat.sent, now.time_since_epoch() / std::chrono::nanoseconds(1)}}};
}

std::optional<TimePoint> Coordinator::wake_at() const {
  switch (phase_) {
    case Phase::joining:
      return std::min({next_note_, began_ + options_.join_timeout, begin_by_.value_or(TimePoint::max())});
    case Phase::preparing:
      return !suspended_ && all(State::ready) ? start_at_ : std::nullopt;
    case Phase::running:
      return take_in_at();
    case Phase::gathering:
    case Phase::taking_over:
      return begin_by_;
    default:
      return std::nullopt;
  }
}

Coordinator::Actions Coordinator::woke(TimePoint now) {
  switch (phase_) {
    case Phase::joining:
      return wake_while_joining(now);
    case Phase::preparing:
      return start(now);
    case Phase::running:
      return take_in_at() && now >= *take_in_at() ? take_in(now) : Actions();
    case Phase::gathering:
      return now >= *begin_by_ ? give_up_gathering() : Actions();
    case Phase::taking_over:
      return now >= *begin_by_ ? wake_while_taking_over(now) : Actions();
    default:
      return {};
  }
}

Coordinator::Actions Coordinator::refused(const std::string& address) {
  if (phase_ != Phase::joining || refused_.size() == kMostRefused || !refused_.insert(address).second)
    return {};
  return tell_everybody(
      Note{fmt::format(
               "a node with another key tried to join from {}; copy ~/.fleetrun/key of the first node to it",
               address),
           missing()});
}

// ---- Starting.

Coordinator::Actions Coordinator::handle(PeerId peer, const Ready& ready, TimePoint now) {
  Node* const node = find(peer);
  if (node == nullptr || phase_ != Phase::preparing || ready.attempt != attempt_) return {};
  if (ready.ports.size() != node->join.device_ids.size())
    return {Drop{
        peer, fmt::format("it has {} ranks and {} ports", node->join.device_ids.size(), ready.ports.size())}};
  node->ready = ready;
  node->state = State::ready;
  return start(now);
}

Coordinator::Actions Coordinator::start(TimePoint now) {
  if (suspended_ || !all(State::ready) || !start_at_ || now < *start_at_) return {};
  phase_ = Phase::running;
  started_ = now;
  ended_nodes_.clear();
  finished_ = false;
  Start start = {.attempt = attempt_, .ranks = {}, .master = {}, .store = nodes_.front().ready.store};
  for (Node& node : nodes_) {
    node.state = State::running;
    node.signs.reset();
    node.seen.see_start(attempt_);
    for (const std::uint16_t port : node.ready.ports) start.ranks.push_back({node.join.address, port});
  }
  start.master = {nodes_.front().join.address, nodes_.front().ready.master_port};
  if (attempt_ > 0) {
    standing_.attempt = attempt_;
    standing_.nodes = static_cast<int>(nodes_.size());
    standing_.join = now - ended_ - standing_.pause;
    stand_stills_.push_back(std::exchange(standing_, {}));
  }
  return tell_members(start);
}

// ---- Running.

Coordinator::Actions Coordinator::handle(PeerId peer, const Signs& signs, TimePoint) {
  Node* const node = find(peer);
  if (node == nullptr || phase_ != Phase::running || signs.attempt != attempt_) return {};
  node->signs = signs.of;
  return {Tell{{peer}, Signs{attempt_, signs_beside(peer)}}};
}

// While a node has not told, its ranks may well work.
SignsOfLife Coordinator::signs_beside(PeerId peer) const {
  const SignsOfLife unknown = {.silent = Clock::duration(), .unmatched = {}, .excuses_steps = true};
  SignsOfLife all;
  for (const Node& node : nodes_)
    if (node.peer != peer && node.state == State::running) all = together(all, node.signs.value_or(unknown));
  return all;
}

Coordinator::Actions Coordinator::handle(PeerId peer, const Finished& finished, TimePoint) {
  if (phase_ != Phase::running || finished.attempt != attempt_ || std::exchange(finished_, true)) return {};
  return tell_others(peer, finished);
}

Coordinator::Actions Coordinator::handle(PeerId peer, const Signalled& signalled, TimePoint now) {
  const bool obeyed = phase_ == Phase::preparing || phase_ == Phase::running ||
                      (phase_ == Phase::stopping && signalled.signal == SIGCONT);
  if (!obeyed || signalled.attempt != attempt_) return {};
  if (signalled.signal == SIGCONT && !suspended_)
    return {};  // somebody had stopped that node's fleetrun alone
  Actions actions = tell_others(peer, signalled);
  if (signalled.signal == SIGTSTP && !suspended_) suspended_ = now;
  if (signalled.signal != SIGCONT) return actions;
  if (start_at_) *start_at_ += now - *suspended_;
  suspended_.reset();
  if (phase_ != Phase::preparing) return actions;
  for (auto& action : start(now)) actions.push_back(std::move(action));
  return actions;
}

// ---- Ending.

Coordinator::Actions Coordinator::handle(PeerId peer, const Failed& failed, TimePoint now) {
  Node* const node = find(peer);
  if (node == nullptr && phase_ == Phase::joining) return fail_while_joining(peer, failed.failure);
  if (phase_ == Phase::taking_over) return fail_while_taking_over(peer, failed.failure);
  if (node == nullptr || phase_ == Phase::over) return {};
  if (failed.attempt != attempt_ && !ends_between_attempts(*node, failed)) return {};
  const auto cause = cause_called(failed.failure.cause);
  const bool goes = leaves(*node, failed.failure);
  if (goes) node->departure = failed.failure;
  if (!goes && (!cause || !facts_of(*cause).restarts))
    restarts_.forbid();  // also when another failure was the first
  if (!node->failure || failed.failure.at < node->failure->at) set_failure(*node, failed.failure);
  const bool runs = phase_ == Phase::running || phase_ == Phase::stopping;
  if (!runs && !goes) return end(failed.failure, static_cast<int>(node - nodes_.data()));
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

// In an elastic run the others go on without a node whose fleetrun cannot go on. The first node coordinates them.
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
  return tell_others(failed, Stop{failure.line, failure.exit_code, cause && is_of_all_ranks(*cause)});
}

Coordinator::Actions Coordinator::handle(PeerId peer, const Hurry& hurry, TimePoint) {
  if (phase_ != Phase::stopping || hurry.attempt != attempt_) return {};
  return tell_others(peer, hurry);
}

Coordinator::Actions Coordinator::handle(PeerId peer, const Ended& ended, TimePoint now) {
  Node* const node = find(peer);
  if (phase_ == Phase::taking_over) return end_while_taking_over(peer, ended);
  if (node != nullptr && phase_ == Phase::preparing && ended.no_restart)
    return end_taking_in();  // it took over
  if (node == nullptr || ended.attempt != attempt_ || phase_ == Phase::over) return {};
  node->state = State::ended;
  node->finished = ended.finished;
  node->step = ended.step;
  if (ended.failure && leaves(*node, *ended.failure)) node->departure = ended.failure;
  if (ended.no_restart && !node->departure) restarts_.forbid();
  node->ranks = ended.ranks;
  node->roll_call = ended.roll_call;
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
  failure.at = last_heard.time_since_epoch() / std::chrono::nanoseconds(1);
  return lose(*node, failure, now);
}

// A node that has ended its ranks before cannot be the cause any more.
Coordinator::Actions Coordinator::lose(Node& node, const NodeFailure& failure, TimePoint now) {
  const bool had_ended = std::exchange(node.state, State::lost) == State::ended && !node.failure;
  if (phase_ == Phase::gathering) {
    std::erase_if(nodes_, [](const Node& one) { return one.state == State::lost; });
    return {};
  }
  if (!had_ended && !node.failure) node.failure = failure;
  if (phase_ == Phase::preparing) {
    if (!options_.elastic()) return end(node.failure, static_cast<int>(&node - nodes_.data()));
    stop_began_ = now;
    return conclude(now);
  }
  Actions actions = had_ended ? Actions() : stop(failure, node.peer, now);
  for (auto& action : conclude_if_all_ended(now)) actions.push_back(std::move(action));
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
  const std::optional<int> first = first_to_fail();
  const bool finished = std::ranges::all_of(nodes_, [](const Node& node) { return node.finished; });
  if (!first && taking_in_ && !finished) return restarts_.forbidden() ? end_taking_in() : begin_next({}, now);
  if (!first) return end(std::nullopt, std::nullopt);
  NodeFailure failure = *nodes_[static_cast<std::size_t>(*first)].failure;
  for (int i = 0; i < std::ssize(nodes_); ++i) {
    const auto& other = nodes_[static_cast<std::size_t>(i)].failure;
    if (i == *first || !other || other->at - failure.at > other->error + failure.error) continue;
    if (other->line == failure.line) continue;  // of all nodes, such as --timeout
    failure.block +=
        fmt::format("fleetrun: {} at the same time: the nodes can compare times only to within {:.1f} ms\n",
                    other->line, static_cast<double>(other->error + failure.error) / 1e6);
  }
  if (!may_start_again(failure)) return end(failure, first);
  if (lost_any() && worth_restarting(options_.restart, failure.exit_code)) {
    if (!restarts_.after_loss(now)) return end(failure, first);
    return go_on(failure, {}, now);
  }
  const auto delay = restarts_.after(failure.exit_code, now - started_, now, highest_step());
  if (delay) return go_on(failure, *delay, now);
  if (!restarts_.crash_loop()) return end(failure, first);
  failure.exit_code = static_cast<int>(ErrorKind::gave_up);
  return end(failure, first, true);
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

Coordinator::Actions Coordinator::tell_members(const FromFirst& message) const {
  return tell_others(0, message);
}

Coordinator::Actions Coordinator::tell_everybody(const FromFirst& message) const {
  Actions actions = tell_members(message);
  for (const Node& node : waiting_) std::get<Tell>(actions.front()).to.push_back(node.peer);
  return actions;
}

Coordinator::Actions Coordinator::tell_others(PeerId peer, const FromFirst& message) const {
  Tell tell = {.to = {}, .message = message};
  for (const Node& node : nodes_)
    if (node.peer != peer && node.state != State::lost) tell.to.push_back(node.peer);
  return {std::move(tell)};
}

bool Coordinator::all(State state) const {
  return std::all_of(nodes_.begin(), nodes_.end(), [&](const Node& node) { return node.state == state; });
}

Coordinator::Node* Coordinator::find(PeerId peer) {
  const auto found = std::find_if(nodes_.begin(), nodes_.end(), [&](const Node& node) {
    return node.peer == peer && node.state != State::lost;
  });
  return found == nodes_.end() ? nullptr : &*found;
}

std::string Coordinator::name_of(const Node& node) const {
  return fmt::format("node {} ({})", &node - nodes_.data(), address_of(node));
}

std::string Coordinator::address_of(const Node& node) const {
  return fmt::format("{}, {}", node.join.address, node.join.host);
}

std::optional<PeerId> Coordinator::peer_of(int node) const {
  if (phase_ == Phase::joining || node < 0 || node >= std::ssize(nodes_)) return std::nullopt;
  const Node& one = nodes_[static_cast<std::size_t>(node)];
  return one.state == State::lost ? std::nullopt : std::optional(one.peer);
}

JsonValue Coordinator::ranks() const {
  JsonValue all = JsonValue::list({});
  for (const Node& node : nodes_)
    for (const JsonValue& rank : node.ranks.items) {
      all.items.push_back(rank);
      all.items.back().add("host", node.join.host);
    }
  return all;
}

std::vector<std::string> Coordinator::roll_call() const {
  std::vector<std::string> lines;
  for (const Node& node : nodes_) lines.insert(lines.end(), node.roll_call.begin(), node.roll_call.end());
  return lines;
}

}  // namespace fleetrun::launch
