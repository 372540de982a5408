// The Coordinator's decisions about which nodes take part in an attempt, and which wait.
#include <algorithm>
#include <csignal>
#include <set>
#include <span>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error/error.h"
#include "base/error/exit_codes.h"
#include "base/text/plural.h"
#include "launch/nodes/coordinator.h"
#include "launch/nodes/rank_order.h"
#include "launch/nodes/terms.h"
#include "launch/process/exit_status.h"
#include "launch/supervise/exit_cause.h"

namespace fleetrun::launch {
namespace {

constexpr std::size_t kMostDifferences = 20;  // shown
// An attempt that has run this long has probably left its start behind, which would be lost.
constexpr auto kBeforeTakingIn = std::chrono::seconds(5);

std::string value_of(const Terms& terms, const std::string& name) {
  for (const auto& [each, value] : terms)
    if (each == name) return value.empty() ? "nothing" : value;
  return "nothing";
}

// Lines "--timeout: 5 on node 0, 6 on node 1".
void compare(const Terms& wanted, const std::string& here, const Terms& found, const std::string& there,
             std::vector<std::string>& lines) {
  std::set<std::string> names;
  for (const Terms* const terms : {&wanted, &found})
    for (const auto& [name, value] : *terms) names.insert(name);
  for (const std::string& name : names) {
    const std::string want = value_of(wanted, name), have = value_of(found, name);
    if (want != have)
      lines.push_back(fmt::format("  {}: {} on {}, {} on {}", name, shown_term(name, want), here,
                                  shown_term(name, have), there));
  }
}

std::optional<std::string> as_objection(std::vector<std::string> lines) {
  if (lines.empty()) return std::nullopt;
  const std::size_t more = lines.size() > kMostDifferences ? lines.size() - kMostDifferences : 0;
  lines.resize(lines.size() - more);
  if (more > 0) lines.push_back(fmt::format("  and {} more", plural(more, "difference")));
  return fmt::format("the nodes do not agree:\n{}", fmt::join(lines, "\n"));
}

}  // namespace

Coordinator::Actions Coordinator::handle(PeerId peer, const Join& join, TimePoint now) {
  if (not_begun_) return {Tell{{peer}, Over{not_begun_, std::nullopt}}, Drop{peer, not_begun_->line}};
  if (const auto why = objection_to(peer, join)) return refuse(peer, join, *why);
  waiting_.push_back({.peer = peer,
                      .join = join,
                      .ready = {},
                      .failure = {},
                      .ranks = {},
                      .roll_call = {},
                      .signs = {},
                      .step = {},
                      .seen = join.seen,
                      .is_new = !join.seen.last()});
  if (phase_ == Phase::taking_over) return take_over_if_all_have_come(now);
  if (phase_ == Phase::joining) {
    Actions begin = begin_if_enough(now);
    if (phase_ != Phase::joining) return begin;
    begin = {Tell{{peer}, Note{.line = "", .missing = missing()}}};
    // Others may have been refused before this node, also the first one, could hear of it.
    for (const std::string& address : refused_) begin.emplace_back(Tell{{peer}, note_of_refusal(address)});
    return begin;
  }
  if (is_in_pause(now) && has_room_for(waiting_.back()) && std::ssize(nodes_) < options_.most_running())
    return begin_next(*start_at_ - now, now);  // no rank runs, and nothing is lost
  Actions actions = tell_places_to_waiting({peer}, now);
  actions.push_back(note_for_waiting(waiting_.back()));
  if (phase_ != Phase::gathering) return actions;
  for (auto& action : go_on_if_enough(now)) actions.push_back(std::move(action));
  return actions;
}

// Two hosts with one number are a mistake in the commands, which no wait mends, unless the run can do without one of them. On one host it
// may be a second start of the same command.
Coordinator::Actions Coordinator::refuse(PeerId peer, const Join& join, const std::string& why) {
  const NodeFailure failure = failure_of_nodes(ErrorKind::protocol, why);
  Actions actions = {Tell{{peer}, Over{failure, std::nullopt}}, Drop{peer, why}};
  const Node* const holder = holder_of_place(join);
  if (phase_ != Phase::joining || holder == nullptr) return actions;
  const bool is_needed = !options_.elastic() && !options_.without_missing;
  const Actions more = is_needed && holder->join.host != join.host
                           ? end(failure, std::nullopt)
                           : tell_everybody(Note{why + "; the second one cannot join", missing()});
  actions.insert(actions.end(), more.begin(), more.end());
  return actions;
}

std::optional<std::string> Coordinator::objection_to(PeerId peer, const Join& join) const {
  const bool may_join = phase_ == Phase::joining || (options_.elastic() && phase_ != Phase::over);
  if (!may_join) return "all nodes of this run have joined already";
  const auto is_peer = [&](const Node& node) { return node.peer == peer; };
  if (std::ranges::any_of(nodes_, is_peer) || std::ranges::any_of(waiting_, is_peer))
    return "it has joined already";
  if (phase_ != Phase::joining) {
    std::vector<std::string> lines;
    compare(terms_, nodes_.empty() ? "the other nodes" : name_of(nodes_.front()), join.terms,
            fmt::format("{}, {}", join.address, join.host), lines);
    if (auto why = as_objection(std::move(lines))) return why;
  }
  const auto last = join.seen.last();
  if (phase_ != Phase::taking_over && last && last->attempt > attempt_)
    return fmt::format("it was ready for attempt {} of another first node; this is attempt {}", last->attempt,
                       attempt_);
  return objection_to_place(join);
}

// During the run a node may claim the place of one that is lost, before the loss is known.
std::optional<std::string> Coordinator::objection_to_place(const Join& join) const {
  if (!join.node_rank) return std::nullopt;
  if (*join.node_rank < 0 || *join.node_rank >= options_.nodes)
    return fmt::format("there is no node {}: the run has {} nodes", *join.node_rank, options_.nodes);
  const Node* const holder = holder_of_place(join);
  if (holder == nullptr) return std::nullopt;
  const std::string there = fmt::format("{}, {}", join.address, join.host);
  std::string why = fmt::format("{} ({}) and {} ({}) both say that they are node {}", holder->join.host,
                                holder->join.address, join.host, join.address, *join.node_rank);
  std::vector<std::string> lines;
  compare(holder->join.terms, address_of(*holder), join.terms, there, lines);
  if (const auto differences = as_objection(std::move(lines))) why += "; " + *differences;
  return why;
}

// The node that waits and has said that it is the one that `join` claims to be.
const Coordinator::Node* Coordinator::holder_of_place(const Join& join) const {
  const auto holder = std::ranges::find_if(
      waiting_, [&](const Node& node) { return join.node_rank && node.join.node_rank == join.node_rank; });
  return holder == waiting_.end() ? nullptr : &*holder;
}

bool Coordinator::is_in_pause(TimePoint now) const {
  return options_.elastic() && phase_ == Phase::preparing && attempt_ > 0 && start_at_ && now < *start_at_;
}

bool Coordinator::is_first_waiting(PeerId peer) const {
  return std::ranges::any_of(waiting_,
                             [&](const Node& node) { return node.peer == peer && node.join.node_rank == 0; });
}

// ---- Joining.

Coordinator::Actions Coordinator::begin_if_enough(TimePoint now) {
  if (!options_.elastic()) return std::ssize(waiting_) == options_.nodes ? place(now) : Actions();
  const bool has_first =
      std::ranges::any_of(waiting_, [](const Node& node) { return node.join.node_rank == 0; });
  if (!has_first || std::ssize(waiting_) < options_.least_running()) {
    begin_by_.reset();
    return {};
  }
  if (std::ssize(waiting_) >= options_.most_running()) return place(now);
  if (!begin_by_) begin_by_ = now + options_.elastic_timeout;
  return now >= *begin_by_ ? place_without_missing(now) : Actions();
}

Coordinator::Actions Coordinator::place_without_missing(TimePoint now) {
  Actions actions = tell_everybody(Note{
      fmt::format("the run begins with {}; it could take {}", plural(waiting_.size(), "node"), missing()),
      ""});
  for (auto& action : place(now)) actions.push_back(std::move(action));
  return actions;
}

Coordinator::Actions Coordinator::place(TimePoint now) {
  std::stable_partition(waiting_.begin(), waiting_.end(),  // clang 14 cannot compile the one of std::ranges
                        [](const Node& node) { return node.join.node_rank == 0; });
  take_places();
  begin_by_.reset();
  if (const auto why = differences()) return end(failure_of_nodes(ErrorKind::protocol, *why), std::nullopt);
  terms_ = nodes_.front().join.terms;
  phase_ = Phase::preparing;
  start_at_ = now;
  Actions actions = tell_places(now);
  for (const Node& node : waiting_) actions.push_back(note_for_waiting(node));
  return actions;
}

// Every node is compared with the first one.
std::optional<std::string> Coordinator::differences() const {
  std::vector<std::string> lines;
  for (const Node& node : nodes_)
    if (node.state != State::lost)
      compare(nodes_.front().join.terms, name_of(nodes_.front()), node.join.terms, name_of(node), lines);
  for (const Node& node : waiting_)
    compare(nodes_.front().join.terms, name_of(nodes_.front()), node.join.terms, address_of(node), lines);
  return as_objection(std::move(lines));
}

std::string Coordinator::missing() const {
  std::vector<std::string> names;
  std::set<int> here;
  for (const Node& node : waiting_)
    if (node.join.node_rank) here.insert(*node.join.node_rank);
  for (int rank = 1; rank < std::ssize(options_.names); ++rank)  // this is node 0
    if (!here.contains(rank))
      names.push_back(fmt::format("node {} ({})", rank, options_.names[static_cast<std::size_t>(rank)]));
  if (options_.elastic()) {
    const auto needed = options_.least_running() - std::ssize(waiting_);
    const auto wanted = options_.most_running() - std::ssize(waiting_);
    std::string text =
        needed > 0 ? fmt::format("{} of at least {}", plural(needed, "node"), options_.least_running())
                   : fmt::format("up to {}", plural(wanted, "more node"));
    if (!names.empty()) text += fmt::format(", not here: {}", fmt::join(names, ", "));
    return text;
  }
  if (!names.empty()) return fmt::format("{}", fmt::join(names, ", "));
  return fmt::format("{} of {}", plural(options_.nodes - std::ssize(waiting_), "node"), options_.nodes);
}

// Without the first node there is no run. A node that has joined may come again, and one that cannot join is missing.
Coordinator::Actions Coordinator::fail_while_joining(PeerId peer, const Failed& failed) {
  const NodeFailure& failure = failed.failure;
  if (is_first_waiting(peer)) return end(failure, 0);
  const bool has_joined = std::ranges::any_of(waiting_, [&](const Node& one) { return one.peer == peer; });
  if (has_joined) return {};
  Actions actions = {Drop{peer, failure.line}};
  const bool is_second = std::ranges::any_of(waiting_, [&](const Node& one) {
    return failed.node_rank ? one.join.node_rank == failed.node_rank
                            : !failed.host.empty() && one.join.host == failed.host;
  });
  const bool needed = !options_.elastic() && !options_.without_missing && !is_second;
  const std::string line =
      is_second ? failure.line + "; this node has joined already, and the run waits for the others"
                : failure.line;
  const Actions more = needed ? end(failure, std::nullopt) : tell_everybody(Note{line, missing()});
  actions.insert(actions.begin(), more.begin(), more.end());
  return actions;
}

Coordinator::Actions Coordinator::wake_while_joining(TimePoint now) {
  if (begin_by_ && now >= *begin_by_) return begin_if_enough(now);
  const auto waited = std::chrono::round<std::chrono::seconds>(now - began_).count();
  if (now >= began_ + options_.join_timeout && options_.without_missing && !waiting_.empty())
    return place(now);
  if (now >= began_ + options_.join_timeout && !begin_by_)
    return end(
        failure_of_nodes(ErrorKind::temporary,
                         fmt::format("{} did not join within {} s (--join_timeout)", missing(), waited)),
        std::nullopt);
  if (now < next_note_) return {};
  next_note_ = now + options_.note_every;
  if (begin_by_)
    return tell_everybody(
        Note{fmt::format("{} {} joined; waiting for {}, until {:g} s have passed (--elastic_timeout)",
                         plural(waiting_.size(), "node"), waiting_.size() == 1 ? "has" : "have", missing(),
                         in_seconds(options_.elastic_timeout)),
             missing()});
  return tell_everybody(Note{fmt::format("waiting for {} ({} s)", missing(), waited), missing()});
}

// ---- Places.

bool Coordinator::has_room_for(const Node& node) const {
  return !node.join.node_rank || std::ranges::none_of(nodes_, [&](const Node& one) {
    return one.state != State::lost && one.join.node_rank == node.join.node_rank;
  });
}

int Coordinator::candidates() const {
  return static_cast<int>(
      std::ranges::count_if(waiting_, [this](const Node& node) { return has_room_for(node); }));
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
  const int missing = options_.least_running() - static_cast<int>(nodes_.size()) - candidates();
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
  if (std::ssize(nodes_) + candidates() < options_.least_running()) return {};
  return begin_next({}, now);
}

Coordinator::Actions Coordinator::give_up_gathering() {
  NodeFailure failure = *lost_;
  failure.block += fmt::format("fleetrun: {} left, and the run needs {} (--nnodes)\n",
                               nodes_.size() == 1 ? "1 node is" : fmt::format("{} nodes are", nodes_.size()),
                               options_.least_running());
  return end(failure, std::nullopt);
}

// A signal, or 0: --timeout, forbids another attempt, while the ranks end so that a node can be taken in, or while another node takes over.
Coordinator::Actions Coordinator::end_taking_in(int signal) {
  const Cause cause = signal != 0 ? Cause::stopped : Cause::timed_out;
  const std::string why = signal != 0 ? "stopped by " + describe_signal(signal) : "--timeout has passed";
  const std::string line = why + " while the ranks were starting again";
  return end(
      NodeFailure{.cause = std::string(facts_of(cause).name),
                  .line = line,
                  .block = fmt::format("fleetrun: {}\n", line),
                  .exit_code = signal != 0 ? kSignalExitCode + signal : static_cast<int>(ErrorKind::timeout),
                  .signal = signal},
      std::nullopt);
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
