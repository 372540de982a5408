// The Coordinator's decisions about nodes that join: who may, and when the first attempt begins.
#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error/error.h"
#include "base/text/plural.h"
#include "launch/nodes/coordinator.h"
#include "launch/nodes/terms.h"

namespace fleetrun::launch {
namespace {

constexpr std::size_t kMostDifferences = 20;  // shown
// In which another fleetrun of the same host, which has the log folder, tries to connect again.
constexpr auto kOtherStart = std::chrono::seconds(5);

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

// What the other fleetrun does, which may not be what this one does.
enum class Activity { run, doctor, preflight };

Activity activity_of(const Join& join) {
  const std::string doctor = value_of(join.terms, kDoctorTerm);
  return doctor == kDoctor ? Activity::doctor : doctor == kPreflight ? Activity::preflight : Activity::run;
}

std::string describe(Activity activity) {
  switch (activity) {
    case Activity::run:
      return "takes part in a run";
    case Activity::doctor:
      return "runs fleetrun doctor";
    default:
      return "examines the nodes before a run (--preflight)";
  }
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
  std::erase_if(unable_, [this](const Unable& one) { return has_joined(one.failed); });
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
  if (const Node* const holder = holder_of_place_in_run(waiting_.back()))
    actions.push_back(tell_members(Note{fmt::format("{} claims the place of {}, and waits until that is lost",
                                                    address_of(waiting_.back()), name_of(*holder)),
                                        phase_ == Phase::gathering ? plural(lacking(), "node") : ""})
                          .front());
  if (phase_ != Phase::gathering) return actions;
  for (auto& action : go_on_if_enough(now)) actions.push_back(std::move(action));
  return actions;
}

// Two hosts with one number are a mistake in the commands, which no wait mends, unless the run can do without one of them. On one host it
// may be a second start of the same command.
Coordinator::Actions Coordinator::refuse(PeerId peer, const Join& join, const std::string& why) {
  const Node* const first = first_here();
  const Activity here = activity_of(first != nullptr ? first->join : join);
  const Activity there = activity_of(join);
  // A doctor is done soon, and then the other one can meet its first node here.
  if (here == Activity::doctor && there != here)
    return {
        Tell{{peer},
             Note{.line = why + "; this node waits until that is done", .missing = "", .come_again = true}},
        Drop{peer, why}};
  const NodeFailure failure = failure_of_nodes(ErrorKind::protocol, why);
  Actions actions = {Tell{{peer}, Over{failure, std::nullopt}}, Drop{peer, why}};
  const Node* const holder = holder_of_place(join);
  if (phase_ != Phase::joining) return actions;
  const bool is_needed = !options_.elastic() && !options_.without_missing;
  if (here == Activity::preflight && there == Activity::run && !options_.elastic()) {
    for (auto& action : end(failure, std::nullopt)) actions.push_back(std::move(action));
    return actions;
  }
  if (holder == nullptr || here != there) return actions;
  const Actions more = is_needed && holder->join.host != join.host
                           ? end(failure, std::nullopt)
                           : tell_everybody(Note{why + "; the second one cannot join", missing()});
  actions.insert(actions.end(), more.begin(), more.end());
  return actions;
}

std::optional<std::string> Coordinator::objection_to(PeerId peer, const Join& join) const {
  const auto is_peer = [&](const Node& node) { return node.peer == peer; };
  if (std::ranges::any_of(nodes_, is_peer) || std::ranges::any_of(waiting_, is_peer))
    return "it has joined already";
  if (const Node* const first = first_here();
      first != nullptr && activity_of(first->join) != activity_of(join))
    return fmt::format("{} {}, and {}, {} {}", address_of(*first), describe(activity_of(first->join)),
                       join.address, join.host, describe(activity_of(join)));
  const bool may_join = phase_ == Phase::joining || (options_.elastic() && phase_ != Phase::over);
  if (!may_join) return "all nodes of this run have joined already";
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

const Coordinator::Node* Coordinator::first_here() const {
  if (!nodes_.empty()) return &nodes_.front();
  return waiting_.empty() ? nullptr : &waiting_.front();
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

bool Coordinator::has_joined(const Failed& failed) const {
  return std::ranges::any_of(waiting_, [&](const Node& one) {
    return failed.node_rank ? one.join.node_rank == failed.node_rank
                            : !failed.host.empty() && one.join.host == failed.host;
  });
}

// If the first node fails, the run ends. Another node that had joined may come again. A node that cannot join counts as missing. If it cannot make
// its log folder, another fleetrun of that node may have the folder, and may join soon.
Coordinator::Actions Coordinator::fail_while_joining(PeerId peer, const Failed& failed, TimePoint now) {
  const NodeFailure& failure = failed.failure;
  if (is_first_waiting(peer)) return end(failure, 0);
  if (std::ranges::any_of(waiting_, [&](const Node& one) { return one.peer == peer; })) return {};
  Actions actions = {Drop{peer, failure.line}};
  const bool is_second = has_joined(failed);
  const bool is_needed = !options_.elastic() && !options_.without_missing && !is_second;
  const bool may_come = is_needed && failure.exit_code == static_cast<int>(ErrorKind::create);
  std::string line = failure.line;
  if (is_second) line += "; this node has joined already, and the run waits for the others";
  if (may_come) {
    unable_.push_back({failed, now + kOtherStart});
    line += fmt::format("; the run waits {:g} s for another fleetrun of this node", in_seconds(kOtherStart));
  }
  const Actions more =
      is_needed && !may_come ? end(failure, std::nullopt) : tell_everybody(Note{line, missing()});
  actions.insert(actions.begin(), more.begin(), more.end());
  return actions;
}

Coordinator::Actions Coordinator::wake_while_joining(TimePoint now) {
  if (!unable_.empty() && now >= unable_.front().until)
    return end(unable_.front().failed.failure, std::nullopt);
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

}  // namespace fleetrun::launch
