#include "launch/nodes/coordinator.h"

#include <algorithm>
#include <csignal>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "base/error/error.h"
#include "base/text/plural.h"

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
      restarts_(options_.restart, options_.takes_over ? options_.takes_over->restarts : EarlierRestarts()),
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
      return std::min({next_note_, began_ + options_.join_timeout, begin_by_.value_or(TimePoint::max()),
                       unable_.empty() ? TimePoint::max() : unable_.front().until});
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
  return tell_everybody(note_of_refusal(address));
}

Note Coordinator::note_of_refusal(const std::string& address) const {
  return {fmt::format("a node with another key tried to join from {}; copy {} of the first node to it",
                      address, options_.key_file),
          missing()};
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

// The nodes that do not reach the first one there. None if it has only one address, because all have joined at that, or its ranks need no store.
std::vector<std::string> Coordinator::cannot_reach(const std::string& address) const {
  std::vector<std::string> names;
  if (options_.addresses.size() < 2 || nodes_.front().ready.store.endpoint.port == 0) return names;
  for (const Node& node : std::span(nodes_).subspan(1))
    if (std::ranges::find(node.ready.reaches, address) == node.ready.reaches.end())
      names.push_back(name_of(node));
  return names;
}

// The ranks of the first node tell the others this address as their own, so the best one is the first that all nodes reach.
Endpoint Coordinator::place_for_ranks() const {
  const StorePlace& store = nodes_.front().ready.store;
  std::vector<std::string> addresses = {store.endpoint.host};
  addresses.insert(addresses.end(), store.also_at.begin(), store.also_at.end());
  const auto best = std::ranges::min_element(
      addresses, {}, [this](const std::string& address) { return cannot_reach(address).size(); });
  return {*best, store.endpoint.port};
}

Coordinator::Actions Coordinator::start(TimePoint now) {
  if (suspended_ || !all(State::ready) || !start_at_ || now < *start_at_) return {};
  phase_ = Phase::running;
  started_ = now;
  ended_nodes_.clear();
  finished_ = false;
  Start start = {.attempt = attempt_, .ranks = {}, .master = {}, .store = place_for_ranks()};
  for (Node& node : nodes_) {
    node.state = State::running;
    if (!node.first_attempt) node.first_attempt = attempt_;
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
  Actions actions;
  if (const auto beyond = cannot_reach(start.store.host); !beyond.empty())
    actions = tell_members(Note{
        fmt::format(
            "the ranks meet at {} of {}, and {} of {} cannot reach it, such as {}; no other address is better",
            start.store.host, name_of(nodes_.front()), beyond.size(), plural(nodes_.size(), "node"),
            beyond.front()),
        ""});
  actions.push_back(tell_members(start).front());
  return actions;
}

// ---- Running.

Coordinator::Actions Coordinator::handle(PeerId peer, const Signs& signs, TimePoint now) {
  Node* const node = find(peer);
  if (node == nullptr || phase_ != Phase::running || signs.attempt != attempt_) return {};
  node->signs = signs.of;
  return {Tell{{peer}, Signs{attempt_, signs_beside(peer, now)}}};
}

// While a node has not told, its ranks may well work. The end of a node's ranks is a sign of life, and the last line before it may have
// matched every rule.
SignsOfLife Coordinator::signs_beside(PeerId peer, TimePoint now) const {
  const SignsOfLife unknown = {.silent = Clock::duration(), .unmatched = {}, .excuses_steps = true};
  SignsOfLife all;
  for (const Node& node : nodes_) {
    if (node.peer == peer) continue;
    if (node.state == State::running) all = together(all, node.signs.value_or(unknown));
    if (node.state != State::ended) continue;
    const Clock::duration since = now - node.ended;
    const std::size_t rules = node.signs ? node.signs->unmatched.size() : 0;
    all = together(all, {.silent = since, .unmatched = {rules, since}});
    if (node.signs)
      all = together(all, {.silent = node.signs->silent});  // of what its ranks have left behind
  }
  return all;
}

Coordinator::Actions Coordinator::handle(PeerId peer, const Finished& finished, TimePoint) {
  if (phase_ != Phase::running || finished.attempt != attempt_ || std::exchange(finished_, true)) return {};
  return tell_others(peer, finished);
}

Coordinator::Actions Coordinator::handle(PeerId peer, const Signalled& signalled, TimePoint now) {
  const bool obeyed = phase_ == Phase::preparing || phase_ == Phase::running ||
                      (phase_ == Phase::stopping && signalled.signal == SIGCONT);
  if (!obeyed || signalled.attempt != attempt_ || find(peer) == nullptr) return {};
  if (signalled.signal == SIGCONT && !suspended_)
    return {};  // somebody had stopped that node's fleetrun alone
  Actions actions = tell_others(peer, signalled);
  if (signalled.signal == SIGTSTP) {
    suspended_ = suspended_.value_or(now);
    suspended_by_.insert(peer);
  }
  if (signalled.signal != SIGCONT) return actions;
  if (start_at_) *start_at_ += now - *suspended_;
  suspended_.reset();
  suspended_by_.clear();
  if (phase_ != Phase::preparing) return actions;
  for (auto& action : start(now)) actions.push_back(std::move(action));
  return actions;
}

// ---- Messages, and facts about the nodes.

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

std::optional<PeerId> Coordinator::peer_of(const Placed& placed, int node) const {
  if (phase_ == Phase::joining || node < 0 || node >= std::ssize(placed.nodes)) return std::nullopt;
  const auto number = static_cast<std::size_t>(node);
  const NodePlace& place = placed.nodes[number];
  const auto is_there = [&](const Node& one) {
    return one.join.address == place.address && one.join.logs == place.logs;
  };
  const bool keeps_number = number < nodes_.size() && is_there(nodes_[number]);
  const auto found =
      keeps_number ? nodes_.begin() + node : std::find_if(nodes_.begin(), nodes_.end(), is_there);
  return found == nodes_.end() || found->state == State::lost ? std::nullopt : std::optional(found->peer);
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
