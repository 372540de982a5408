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

constexpr std::size_t kMostDifferences = 20;  // shown
constexpr std::size_t kMostRefused = 16;      // addresses that are named

NodeFailure failure_of_nodes(ErrorKind kind, const std::string& line) {
  return {.cause = "nodes",
          .line = line,
          .block = "fleetrun: " + line + "\n",
          .exit_code = static_cast<int>(kind)};
}

std::string value_of(const Terms& terms, const std::string& name) {
  for (const auto& [each, value] : terms)
    if (each == name) return value.empty() ? "nothing" : value;
  return "nothing";
}

}  // namespace

Coordinator::Coordinator(CoordinatorOptions options, TimePoint now)
    : options_(std::move(options)),
      restarts_(options_.restart),
      began_(now),
      next_note_(now + options_.note_every) {}

Coordinator::Actions Coordinator::on(PeerId peer, const FromNode& message, TimePoint now) {
  return std::visit([&](const auto& one) { return handle(peer, one, now); }, message);
}

Coordinator::Actions Coordinator::handle(PeerId peer, const Beat& beat, TimePoint now) {
  return {Tell{{peer}, Echo{beat.sent, now.time_since_epoch() / std::chrono::nanoseconds(1)}}};
}

// ---- Joining.

Coordinator::Actions Coordinator::handle(PeerId peer, const Join& join, TimePoint now) {
  if (not_begun_) return {Tell{{peer}, Over{not_begun_, std::nullopt}}, Drop{peer, not_begun_->line}};
  if (const auto why = objection_to(peer, join))
    return {Tell{{peer}, Over{failure_of_nodes(ErrorKind::protocol, *why), std::nullopt}}, Drop{peer, *why}};
  nodes_.push_back(
      {.peer = peer, .join = join, .ready = {}, .failure = {}, .ranks = {}, .roll_call = {}, .signs = {}});
  if (std::ssize(nodes_) == options_.nodes) return place(now);
  return {Tell{{peer}, Note{.line = "", .missing = missing()}}};
}

std::optional<std::string> Coordinator::objection_to(PeerId peer, const Join& join) {
  if (phase_ != Phase::joining) return "all nodes of this run have joined already";
  if (find(peer) != nullptr) return "it has joined already";
  if (!join.node_rank) return std::nullopt;
  if (*join.node_rank < 0 || *join.node_rank >= options_.nodes)
    return fmt::format("there is no node {}: the run has {} nodes", *join.node_rank, options_.nodes);
  for (const Node& node : nodes_)
    if (node.join.node_rank == join.node_rank)
      return fmt::format("{} and {} both say that they are node {}", node.join.host, join.host,
                         *join.node_rank);
  return std::nullopt;
}

// Nodes that claim a rank get it; the others take what is free, as they came.
Coordinator::Actions Coordinator::place(TimePoint now) {
  std::vector<Node> placed(nodes_.size());
  std::set<int> taken;
  for (Node& node : nodes_)
    if (node.join.node_rank) taken.insert(*node.join.node_rank);
  for (Node& node : nodes_) {
    int rank = 0;
    while (taken.contains(rank)) ++rank;
    rank = node.join.node_rank.value_or(rank);
    taken.insert(rank);
    placed[static_cast<std::size_t>(rank)] = std::move(node);
  }
  nodes_ = std::move(placed);
  if (const auto why = differences()) return end(failure_of_nodes(ErrorKind::protocol, *why), std::nullopt);
  phase_ = Phase::preparing;
  Places all = {.run_id = options_.run_id, .nodes = {}};
  Actions actions;
  for (Node& node : nodes_) {
    node.join.terms.clear();  // have been compared
    actions.push_back(Tell{{node.peer}, Place{static_cast<int>(all.nodes.size())}});
    all.nodes.push_back({node.join.address, node.join.host, node.join.logs, node.join.device_ids});
  }
  actions.push_back(tell_all(all).front());
  start_at_ = now;
  return actions;
}

// Every node is compared with the first one.
std::optional<std::string> Coordinator::differences() const {
  const Terms& wanted = nodes_.front().join.terms;
  std::vector<std::string> lines;
  for (const Node& node : nodes_) {
    std::set<std::string> names;
    for (const Terms* const terms : {&wanted, &node.join.terms})
      for (const auto& [name, value] : *terms) names.insert(name);
    for (const std::string& name : names) {
      const std::string here = value_of(wanted, name), there = value_of(node.join.terms, name);
      if (here != there)
        lines.push_back(fmt::format("  {}: {} on {}, {} on {}", name, here, name_of(nodes_.front()), there,
                                    name_of(node)));
    }
  }
  if (lines.empty()) return std::nullopt;
  const std::size_t more = lines.size() > kMostDifferences ? lines.size() - kMostDifferences : 0;
  lines.resize(lines.size() - more);
  if (more > 0) lines.push_back(fmt::format("  and {} more", plural(more, "difference")));
  return fmt::format("the nodes do not agree:\n{}", fmt::join(lines, "\n"));
}

std::string Coordinator::missing() const {
  std::vector<std::string> names;
  std::set<int> here;
  for (const Node& node : nodes_)
    if (node.join.node_rank) here.insert(*node.join.node_rank);
  for (int rank = 1; rank < std::ssize(options_.names); ++rank)  // this is node 0
    if (!here.contains(rank))
      names.push_back(fmt::format("node {} ({})", rank, options_.names[static_cast<std::size_t>(rank)]));
  if (!names.empty()) return fmt::format("{}", fmt::join(names, ", "));
  return fmt::format("{} of {}", plural(options_.nodes - std::ssize(nodes_), "node"), options_.nodes);
}

std::optional<TimePoint> Coordinator::wake_at() const {
  if (phase_ == Phase::joining) return std::min(next_note_, began_ + options_.join_timeout);
  if (phase_ == Phase::preparing && !suspended_ && all(State::ready)) return start_at_;
  return std::nullopt;
}

Coordinator::Actions Coordinator::woke(TimePoint now) {
  if (phase_ == Phase::preparing) return start(now);
  if (phase_ != Phase::joining) return {};
  const auto waited = std::chrono::round<std::chrono::seconds>(now - began_).count();
  if (now >= began_ + options_.join_timeout)
    return end(
        failure_of_nodes(ErrorKind::temporary,
                         fmt::format("{} did not join within {} s (--join_timeout)", missing(), waited)),
        std::nullopt);
  if (now < next_note_) return {};
  next_note_ = now + options_.note_every;
  return tell_all(Note{fmt::format("waiting for {} ({} s)", missing(), waited), missing()});
}

Coordinator::Actions Coordinator::refused(const std::string& address) {
  if (phase_ != Phase::joining || refused_.size() == kMostRefused || !refused_.insert(address).second)
    return {};
  return tell_all(
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
  finished_ = false;
  Start start = {.attempt = attempt_, .ranks = {}, .master = {}, .store = nodes_.front().ready.store};
  for (Node& node : nodes_) {
    node.state = State::running;
    node.signs.reset();
    for (const std::uint16_t port : node.ready.ports) start.ranks.push_back({node.join.address, port});
  }
  start.master = {nodes_.front().join.address, nodes_.front().ready.master_port};
  return tell_all(start);
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

Coordinator::Actions Coordinator::handle(PeerId peer, const Failed& failed, TimePoint) {
  Node* const node = find(peer);
  if (node == nullptr || failed.attempt != attempt_ || phase_ == Phase::over) return {};
  if (phase_ == Phase::joining)  // it leaves; without the first node there is no run
    return node->join.node_rank == 0 ? end(failed.failure, 0) : Actions();
  const auto cause = cause_called(failed.failure.cause);
  if (!cause || !facts_of(*cause).restarts) restarts_.forbid();  // also when another failure was the first
  if (!node->failure || failed.failure.at < node->failure->at) node->failure = failed.failure;
  if (phase_ == Phase::preparing) return end(failed.failure, static_cast<int>(node - nodes_.data()));
  return stop(failed.failure, peer);
}

Coordinator::Actions Coordinator::stop(const NodeFailure& failure, PeerId failed) {
  if (phase_ == Phase::stopping) return {};
  phase_ = Phase::stopping;
  const auto cause = cause_called(failure.cause);
  return tell_others(failed, Stop{failure.line, failure.exit_code, cause && is_of_all_ranks(*cause)});
}

Coordinator::Actions Coordinator::handle(PeerId peer, const Hurry& hurry, TimePoint) {
  if (phase_ != Phase::stopping || hurry.attempt != attempt_) return {};
  return tell_others(peer, hurry);
}

Coordinator::Actions Coordinator::handle(PeerId peer, const Ended& ended, TimePoint now) {
  Node* const node = find(peer);
  if (node == nullptr || ended.attempt != attempt_ || phase_ == Phase::over) return {};
  node->state = State::ended;
  if (ended.no_restart) restarts_.forbid();
  node->ranks = ended.ranks;
  node->roll_call = ended.roll_call;
  Actions actions;
  if (ended.failure) {
    node->failure = ended.failure;
    actions = stop(*ended.failure, peer);
  }
  for (auto& action : conclude_if_all_ended(now)) actions.push_back(std::move(action));
  return actions;
}

Coordinator::Actions Coordinator::lost(PeerId peer, const std::string& why, TimePoint last_heard,
                                       TimePoint now) {
  Node* const node = find(peer);
  if (node == nullptr || phase_ == Phase::over) return {};
  if (phase_ == Phase::joining) {  // it may come again
    std::erase_if(nodes_, [&](const Node& one) { return one.peer == peer; });
    return {};
  }
  const bool had_ended = node->state == State::ended;
  node->state = State::lost;
  if (had_ended) return conclude_if_all_ended(now);
  const std::string line =
      fmt::format("lost {}: {}; last heard {:.1f} s ago", name_of(*node), why, in_seconds(now - last_heard));
  NodeFailure failure = failure_of_nodes(ErrorKind::temporary, line);
  failure.cause = "node_lost";
  failure.at = last_heard.time_since_epoch() / std::chrono::nanoseconds(1);
  if (!node->failure) node->failure = failure;
  if (phase_ == Phase::preparing) return end(node->failure, static_cast<int>(node - nodes_.data()));
  Actions actions = stop(failure, peer);
  for (auto& action : conclude_if_all_ended(now)) actions.push_back(std::move(action));
  return actions;
}

Coordinator::Actions Coordinator::conclude_if_all_ended(TimePoint now) {
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

Coordinator::Actions Coordinator::conclude(TimePoint now) {
  const std::optional<int> first = first_to_fail();
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
  const bool all_there =
      !std::any_of(nodes_.begin(), nodes_.end(), [](const Node& node) { return node.state == State::lost; });
  const auto cause = cause_called(failure.cause);
  if (!all_there || !cause || !facts_of(*cause).restarts) return end(failure, first);
  const auto delay = restarts_.after(failure.exit_code, now - started_);
  if (!delay) {
    if (!restarts_.crash_loop()) return end(failure, first);
    failure.exit_code = static_cast<int>(ErrorKind::gave_up);
    return end(failure, first, true);
  }
  ++attempt_;
  phase_ = Phase::preparing;
  start_at_ = now + *delay;
  for (Node& node : nodes_) {
    node.state = State::joined;
    node.failure.reset();
  }
  return tell_all(Again{attempt_, std::chrono::nanoseconds(*delay).count()});
}

Coordinator::Actions Coordinator::end(std::optional<NodeFailure> failure, std::optional<int> node,
                                      bool gave_up) {
  if (phase_ == Phase::joining) not_begun_ = failure;
  phase_ = Phase::over;
  return tell_all(Over{std::move(failure), node, gave_up});
}

Coordinator::Actions Coordinator::tell_all(const FromFirst& message) const { return tell_others(0, message); }

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
  const auto found =
      std::find_if(nodes_.begin(), nodes_.end(), [&](const Node& node) { return node.peer == peer; });
  return found == nodes_.end() ? nullptr : &*found;
}

std::string Coordinator::name_of(const Node& node) const {
  const auto rank = &node - nodes_.data();
  return fmt::format("node {} ({}, {})", rank, node.join.address, node.join.host);
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
