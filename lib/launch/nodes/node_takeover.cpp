// The part of a NodeSession that looks for another first node when the first one is lost.
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include <fmt/format.h>

#include "base/error/error.h"
#include "launch/loop/listen_on.h"
#include "launch/nodes/node_session.h"

namespace fleetrun::launch {
namespace {

constexpr auto kLookEvery = std::chrono::milliseconds(100);  // whether it is the turn of another node
// A node that serves stops after this many looks without a connection to itself, which is before the turn of the next node.
constexpr int kLooksAlone = 20;

}  // namespace

bool NodeSession::ends_for_good() const {
  const NodeFailure* const failure = ending_.failure();
  return ending_.is_wished() ||
         (failure != nullptr && !worth_restarting(options_.restart, failure->exit_code));
}

bool NodeSession::others_may_go_on() const {
  return is_elastic() && known_ && !RestartCounter(options_.restart, restarts_).has_spent_all(Clock::now()) &&
         worth_restarting(options_.restart, static_cast<int>(ErrorKind::temporary));
}

bool NodeSession::may_restart_after_loss() const { return others_may_go_on() && !ends_for_good(); }

// A node that somebody has stopped takes part, too, if the first node was lost before it could tell the others.
bool NodeSession::may_be_taken_over() const {
  return !server_ && !leaving_ && others_may_go_on() && known_->nodes.size() > 1 &&
         (!ends_for_good() || unheard_wish() != nullptr);
}

const NodeFailure* NodeSession::unheard_wish() const { return ending_.unheard_wish(link_->last_received()); }

// The others see closed connections, as after the end of our processes, and need more than half of the nodes (quorum.h).
bool NodeSession::hand_over(const NodeFailure& failure) {
  const bool enough_others = known_ && known_->nodes.size() >= 3;
  if (!server_ || leaving_ || over_ || options_.starts_others || !enough_others || !may_restart_after_loss())
    return false;
  leaving_ = over_ = true;
  taking_over_.reset();
  say_("this node leaves the run to the other nodes");
  link_->close();
  server_->abandon();
  answer(Over{failure, known_->node_rank});
  return true;
}

// A callback of the lost link calls this, so the link is replaced later.
void NodeSession::begin_taking_over(const std::string& why) {
  const TimePoint now = Clock::now();
  NodeFailure loss = loss_of_first(why);
  const NodeFailure first = with_earlier_failure(loss);
  const NodeFailure* const wish = unheard_wish();
  if (wish != nullptr)
    loss = first;
  else
    loss.line = first.line, loss.block = first.block;  // the run goes on as after a loss
  say_(fmt::format("lost {}: {}; {}", name_of_first(), why,
                   wish != nullptr ? "this node looks for the others to end the run"
                                   : "the other nodes meet to go on without it"));
  tell_run(EndedElsewhere{loss.line, loss.exit_code});
  const int rank = known_->node_rank;
  taking_over_.emplace(TakingOver{
      .loss = loss,
      .detection = now - link_->last_heard(),
      .last = *known_,
      .succession = {static_cast<int>(known_->nodes.size()), rank < 0 ? std::nullopt : std::optional(rank),
                     now},
      .unsent = wish != nullptr ? std::vector<FromNode>{Failed{attempt_, *wish}} : std::vector<FromNode>()});
  look_.call_at(now, [this] { look_for_successor(); });
  keep_up_addresses();
}

void NodeSession::look_for_successor() {
  if (!taking_over_ || over_) return;
  look_.call_at(Clock::now() + kLookEvery, [this] { look_for_successor(); });
  if (server_ && link_->is_open()) taking_over_->looks_alone = 0;
  if (server_ && !link_->is_open() && ++taking_over_->looks_alone == kLooksAlone) stop_serving();
  if (taking_over_->has_found) return;
  const Succession::Plan plan = taking_over_->succession.plan(Clock::now());
  if (plan.gave_up) return give_up_looking();
  if (plan.serve && serve_as_successor()) return;
  for (const int rank : plan.ask)
    for (const Endpoint& place : endpoints_of(taking_over_->last.nodes[static_cast<std::size_t>(rank)]))
      search_.ask(place);
}

bool NodeSession::serve_as_successor() {
  const Placed& last = taking_over_->last;
  Endpoint own = own_endpoint(last);
  UniqueFd listening = listen_on(own, SOMAXCONN);
  if (!listening) {
    say_(fmt::format("this node cannot take over: listening on {}: {}", own.describe(),
                     describe_errno(errno)));
    taking_over_->succession.pass_own_turn();
    return false;
  }
  search_.end();
  taking_over_->has_found = true;
  CoordinatorOptions options = coordinator_options();
  options.run_id = last.run_id;
  options.addresses = book_.of(last.nodes[static_cast<std::size_t>(last.node_rank)].address);
  options.takes_over = {.loss = taking_over_->loss,
                        .detection = taking_over_->detection,
                        .survivors = static_cast<int>(last.nodes.size()) - 1,
                        .restarts = restarts_,
                        .terms = options_.join.terms,
                        .meet = Succession::kTurn};
  options_.join.coordinates = true;
  server_ = std::make_unique<NodeServer>(loop_, std::move(listening), options_.key, options);
  listen_at_others(options.addresses, own);
  link_ = std::make_unique<NodeLink>(loop_, std::vector{own}, options_.key, listener(), kSuccessor);
  if (ending_.is_wished()) return true;
  std::string line = "this node takes over from the first node if more than half of the nodes meet here";
  if (options_.members.names.empty())
    line += fmt::format("; nodes that come from now on need --master={}{}", own.describe(),
                        options_.join.node_rank ? " and no --node_rank" : "");
  say_(line);
  return true;
}

// A firewall may close the port, probably for the others, too. A node that has come nevertheless looks for the next one.
void NodeSession::stop_serving() {
  if (server_->coordinator().over()) return give_up_looking();  // the others hear how it has ended
  say_(fmt::format(
      "this node cannot take over: it cannot connect to {}, where it listens itself; a firewall may close this port",
      own_endpoint(taking_over_->last).describe()));
  link_->close();
  server_.reset();
  options_.join.coordinates = false;
  taking_over_->succession.pass_own_turn();
  taking_over_->has_found = false;
}

// Called by the link that is found.
void NodeSession::join_found(std::unique_ptr<NodeLink> link) {
  link_ = std::move(link);
  if (taking_over_) {
    taking_over_->has_found = true;
  } else {  // this node does not begin a new run
    server_.reset();
    options_.join.coordinates = false;
  }
  on_open();
}

// The node that was to take over is gone as well, before it took over.
void NodeSession::go_on_looking(const std::string& why) {
  if (server_) return give_up_looking();
  taking_over_->loss.block += fmt::format("fleetrun: the node that was to take over is lost, too: {}\n", why);
  taking_over_->has_found = false;
  keep_up_addresses();
}

void NodeSession::stop_looking() {
  if (taking_over_ && !over_ && !link_->is_open() && ending_.is_wished()) give_up_looking();
}

void NodeSession::give_up_looking() {
  NodeFailure failure = taking_over_->loss;
  failure.line += "; no other node of the run took over";
  failure.block = fmt::format("fleetrun: {}\n", failure.line);
  search_.end();
  book_.stop();
  taking_over_->has_found = true;
  over_ = true;
  answer(Over{failure, 0});
}

}  // namespace fleetrun::launch
