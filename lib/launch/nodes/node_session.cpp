#include "launch/nodes/node_session.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <utility>

#include <fmt/format.h>

#include "base/error/error.h"
#include "base/error/exit_codes.h"
#include "base/text/plural.h"
#include "launch/host/port_owner.h"
#include "launch/loop/listen_on.h"
#include "launch/process/exit_status.h"
#include "launch/process/signals.h"
#include "launch/supervise/exit_cause.h"

namespace fleetrun::launch {
namespace {

constexpr auto kNoteEvery = std::chrono::seconds(10);
constexpr auto kFirstLook = std::chrono::seconds(1);      // for nodes that are down, so that nothing answers
constexpr auto kOwnAnswer = std::chrono::seconds(5);      // of the first node to itself, after --join_timeout
constexpr auto kLeavePatience = std::chrono::seconds(5);  // for the others to stop their ranks
constexpr auto kComeAgain = std::chrono::seconds(2);
constexpr auto kLastAsks = std::chrono::seconds(5);  // for the first node to show the ends of our logs

NodeFailure failure_while_joining(Cause cause, const std::string& line, int exit_code) {
  return {.cause = std::string(facts_of(cause).name),
          .line = line,
          .block = fmt::format("fleetrun: {}\n", line),
          .exit_code = exit_code};
}

const char* when_joining(bool is_spare) {
  return is_spare ? "while this node was a spare" : "before all nodes had joined";
}

NodeFailure stopped_while_joining(int signal, bool is_spare) {
  NodeFailure failure = failure_while_joining(
      Cause::stopped, fmt::format("stopped by {} {}", describe_signal(signal), when_joining(is_spare)),
      kSignalExitCode + signal);
  failure.signal = signal;
  return failure;
}

// The other nodes treat a node without a front process as lost.
NodeFailure front_lost_while_joining(bool is_spare) {
  return failure_while_joining(
      Cause::front_lost, fmt::format("the front process of fleetrun is gone {}", when_joining(is_spare)),
      static_cast<int>(ErrorKind::temporary));
}

// Notices what comes during the wait for the others: signals, and the end of the front process.
class Interruptions {
 public:
  Interruptions(EventLoop& loop, int front_fd, std::function<void()> on_front_lost,
                std::function<void(int signal)> on_signal)
      : loop_(loop), front_fd_(front_fd) {
    signals_ = open_signal_fd(handled_signals());
    loop_.watch_readable(front_fd_, [this, lost = std::move(on_front_lost)] {
      loop_.forget(front_fd_);
      lost();
    });
    loop_.watch_readable(signals_.get(), [this, take = std::move(on_signal)] {
      for (const ReceivedSignal& signal : read_signals(signals_.get())) take(signal.number);
    });
  }
  ~Interruptions() {
    loop_.forget(front_fd_);
    loop_.forget(signals_.get());
  }
  Interruptions(const Interruptions&) = delete;
  Interruptions& operator=(const Interruptions&) = delete;

 private:
  EventLoop& loop_;
  int front_fd_;
  UniqueFd signals_;
};

}  // namespace

NodeSession::NodeSession(EventLoop& loop, NodeSessionOptions options, Say say)
    : loop_(loop),
      options_(std::move(options)),
      say_(std::move(say)),
      book_(loop,
            options_.members.listed.empty() ? std::vector{options_.members.first} : options_.members.listed),
      search_(loop, options_.key, listener(),
              [this](std::unique_ptr<NodeLink> link) { join_found(std::move(link)); }),
      look_(loop),
      rival_wait_(loop) {
  look_for_run_that_goes_on();
  if (link_) return;
  if (options_.members.may_be_first) serve();
  link_to_first();
  if (server_) look_for_rivals();
}

NodeLink::Listener NodeSession::listener() {
  return {.on_open = [this] { on_open(); },
          .on_message = [this](const FromFirst& message) { on_message(message); },
          .on_lost = [this](const std::string& why) { on_lost(why); }};
}

void NodeSession::link_to_first() {
  link_ = std::make_unique<NodeLink>(loop_, options_.members.meetings(), options_.key, listener());
  if (!server_) keep_up_addresses();
}

// This node may come (back) to an elastic run that another node has taken over. So until it has a place, it asks all nodes
// that it knows. The first of them also asks before it begins a new run.
void NodeSession::look_for_run_that_goes_on() {
  if (!may_search()) return;
  ask_others();
  if (options_.members.may_be_first) run_until(kFirstLook, [this] { return link_ || search_.all_failed(); });
}

bool NodeSession::may_search() const { return is_elastic() && options_.looks_for_run; }

// Another fleetrun, which did not belong to the run, was where the nodes meet. It may have been on this host.
void NodeSession::come_again() {
  if (link_->is_open() || placed_) return;
  if (options_.members.may_be_first && !server_) serve();
  if (may_search()) ask_others();
  link_to_first();
}

// The first node has found a run that goes on, and does not begin a new one; or the node that was to take over is gone.
void NodeSession::join_again() {
  if (link_->is_open() || placed_) return;
  ask_others();
  link_to_first();
}

NodeSession::~NodeSession() = default;

// Without a rank, the first that listens at the meeting point is the first node.
void NodeSession::serve() {
  const Membership& members = options_.members;
  Endpoint meeting = members.meeting;
  UniqueFd listener = listen_on(meeting, SOMAXCONN);
  const int problem = errno;
  if (!listener && problem == EADDRINUSE && !members.node_rank) return;
  if (!listener) {
    const std::string owner = problem == EADDRINUSE ? describe_port_owner(meeting.port) : "";
    throw Error(ErrorKind::temporary,
                fmt::format("the nodes cannot meet at {}: {}", meeting.describe(),
                            owner.empty() ? describe_errno(problem) : "the port is taken by " + owner),
                members.port_flag + " on all nodes chooses another port");
  }
  options_.join.node_rank = 0;
  options_.join.coordinates = true;
  server_ = std::make_unique<NodeServer>(loop_, std::move(listener), options_.key, coordinator_options());
  listen_at_others(addresses_of(members.first), meeting);
  if (!options_.command.empty())
    say_(fmt::format("start the other {} with: {}", plural(members.nodes - 1, "node"), options_.command));
}

CoordinatorOptions NodeSession::coordinator_options() const {
  const Membership& members = options_.members;
  return {.nodes = members.nodes,
          .least = members.least,
          .spares = members.spares,
          .takes_in_while_running = options_.takes_in_while_running,
          .run_id = options_.run_id,
          .names = members.names,
          .addresses = addresses_of(members.first),
          .rival_mark = rival_mark(),
          .key_file = options_.key.file,
          .join_timeout = options_.join_timeout,
          .note_every = kNoteEvery,
          .elastic_timeout = options_.elastic_timeout,
          .without_missing = options_.without_missing,
          .restart = options_.restart};
}

std::string NodeSession::name_of_first() const {
  return fmt::format("node 0 ({})", known_ ? known_->nodes.front().address : options_.members.first.name);
}

std::string NodeSession::own_name() const {
  const auto node = static_cast<std::size_t>(placed_->node_rank);
  return fmt::format("node {} ({})", node, placed_->nodes.at(node).address);
}

std::optional<NodeFailure> NodeSession::join(int front_fd) {
  const Interruptions interruptions(
      loop_, front_fd, [this] { interruption_ = front_lost_while_joining(is_spare()); },
      [this](int signal) { take_signal(signal); });
  const TimePoint deadline =
      Clock::now() + options_.join_timeout + (server_ ? kOwnAnswer : Clock::duration());
  TimePoint next_note = Clock::now() + kNoteEvery;
  Timer tick(loop_);  // so that the loop returns
  const std::function<void()> wake = [&] { tick.call_at(Clock::now() + kNodeBeat, wake); };
  wake();
  while (!placed_ && answers_.empty()) {
    loop_.run_one();
    if (interruption_) {
      if (server_) leave(*interruption_);
      return interruption_;
    }
    if (link_->is_open() || taking_over_) continue;
    if (Clock::now() >= deadline)
      throw Error(ErrorKind::temporary,
                  fmt::format("{} did not answer in {:g} s (--join_timeout): {}", place_of_first(),
                              in_seconds(options_.join_timeout), link_->problem()));
    if (Clock::now() < next_note) continue;
    next_note += kNoteEvery;
    say_(describe_wait_for_first());
  }
  rivals_.clear();
  rival_wait_.cancel();
  if (placed_) return std::nullopt;
  if (server_) server_->finish();
  const auto& over = std::get<Over>(answers_.back());
  was_spare_ = !over.failure;
  if (was_spare_) link_->close();
  return over.failure;
}

bool NodeSession::take_places() {
  if (!next_places_) return false;
  placed_ = std::exchange(next_places_, std::nullopt);
  return true;
}

void NodeSession::stop_waiting(int signal) { interruption_ = stopped_while_joining(signal, is_spare()); }

// The nodes meet even while this one is suspended, but no rank starts.
void NodeSession::take_signal(int signal) {
  if (ends_a_run(signal)) stop_waiting(signal);
  if (signal == SIGTSTP || signal == SIGCONT) was_suspended_ = signal == SIGTSTP;
}

// The run has begun without this node.
bool NodeSession::is_spare() const { return known_ && known_->node_rank < 0; }

void NodeSession::stop_waiting(const std::string& why, int exit_code) {
  interruption_ = {
      .cause = "error", .line = why, .block = fmt::format("fleetrun: {}\n", why), .exit_code = exit_code};
}

std::string NodeSession::describe_wait_for_first() const {
  return fmt::format("waiting for {}: {}", place_of_first(), link_->problem());
}

std::string NodeSession::describe_wait() const {
  if (server_) return "waiting for " + server_->coordinator().missing();
  if (!link_->is_open()) return describe_wait_for_first();
  if (is_spare()) return fmt::format("this node is a spare of the run that {} coordinates", name_of_first());
  return "waiting for " + (missing_.empty() ? name_of_first() : missing_);
}

void NodeSession::on_open() {
  if (!taking_over_ && !server_) search_.end();
  book_.stop();
  take_key_of_first();
  Join join = options_.join;
  // The kernel may connect the first node to itself from another address of the same interface.
  if (join.address.empty()) join.address = server_ ? link_->address().host : link_->local_address();
  join.seen = seen_;
  link_->send(join);
  if (!taking_over_) return;
  for (const FromNode& message : std::exchange(taking_over_->unsent, {})) link_->send(message);
}

void NodeSession::take_key_of_first() {
  if (link_->key() == options_.key.key) return;
  say_(fmt::format("{} has given its key to this node through MUNGE", place_of_first()));
  options_.key.key = link_->key();
  search_.use(options_.key);
}

void NodeSession::report_to(EventQueue& events, Say say) {
  events_ = &events;
  say_ = std::move(say);
}

void NodeSession::on_message(const FromFirst& message) {
  if (const auto* note = std::get_if<Note>(&message)) {
    missing_ = note->missing;
    if (!note->line.empty() && (!note->come_again || !comes_again_)) say_(note->line);
    comes_again_ = note->come_again;
    return;
  }
  if (const auto* place = std::get_if<Place>(&message)) {
    node_rank_ = place->node_rank;
    return;
  }
  if (const auto* places = std::get_if<Places>(&message)) return on_places(*places);
  if (const auto* signs = std::get_if<Signs>(&message)) {
    signs_elsewhere_ = signs->of;
    return;
  }
  if (const auto* stop = std::get_if<Stop>(&message)) {
    ending_.was_told(*stop);
    return tell_run(EndedElsewhere{stop->why, stop->exit_code, stop->call_roll, stop->signal});
  }
  if (const auto* finished = std::get_if<Finished>(&message))
    return tell_run(FinishedElsewhere{finished->rank});
  if (const auto* signalled = std::get_if<Signalled>(&message))
    return tell_run(SignalElsewhere{signalled->signal});
  if (std::holds_alternative<Hurry>(message)) return tell_run(HurryAsked{});
  if (const auto* ask = std::get_if<Ask>(&message)) return reply_to(*ask);
  if (const auto* again = std::get_if<Again>(&message)) {
    attempt_ = again->attempt;
    ending_.forget();
    missing_.clear();
  }
  if (const auto* start = std::get_if<Start>(&message)) {
    seen_.see_start(start->attempt);
    missing_.clear();
  }
  if (std::holds_alternative<Over>(message)) taking_over_.reset();
  over_ = over_ || std::holds_alternative<Over>(message);
  answer(message);
}

void NodeSession::on_places(const Places& places) {
  if (places.nodes.empty() || std::cmp_greater_equal(node_rank_, places.nodes.size()))
    return on_lost("it sent a place that the run does not have");
  taking_over_.reset();
  search_.end();
  known_ = {node_rank_, places.run_id, places.nodes, places.attempt, places.restarts};
  first_at_ = places.first_at;
  restarts_ = {places.restarts};
  for (const std::int64_t age : places.restart_ages)
    restarts_.began.push_back(Clock::now() - std::chrono::nanoseconds(age));
  if (node_rank_ < 0) return;
  (placed_ ? next_places_ : placed_) = known_;
  attempt_ = places.attempt;
  seen_.be_ready({places.attempt, static_cast<int>(places.nodes.size()), node_rank_});
  options_.join.address = places.nodes[static_cast<std::size_t>(node_rank_)].address;
}

void NodeSession::send(const FromNode& message) {
  // The first node tells only the others why they stop. What belongs to an earlier attempt does not matter any more.
  if (const auto* failed = std::get_if<Failed>(&message); failed != nullptr && failed->attempt == attempt_)
    ending_.happened_here(failed->failure, Clock::now());
  if (const auto* ended = std::get_if<Ended>(&message); ended != nullptr && ended->attempt == attempt_)
    ending_.know_more(*ended);
  const bool concerns_the_run =
      std::holds_alternative<Failed>(message) || std::holds_alternative<Ended>(message);
  if (taking_over_ && concerns_the_run && !link_->is_open()) return taking_over_->unsent.push_back(message);
  link_->send(message);
}

void NodeSession::tell_run(Event event) {
  if (events_ != nullptr) events_->push(std::move(event));
}

// A later answer replaces one that nobody has taken. But the end of a run does not hide why the attempt before it ended.
void NodeSession::answer(FromFirst message) {
  const bool is_end_of_pause = std::holds_alternative<Over>(message) && !answers_.empty() &&
                               std::holds_alternative<Again>(answers_.back());
  if (!is_end_of_pause) answers_.clear();
  answers_.push_back(std::move(message));
  tell_run(NodesAnswered{});
}

std::optional<FromFirst> NodeSession::take_answer() {
  if (answers_.empty()) return std::nullopt;
  FromFirst oldest = std::move(answers_.front());
  answers_.pop_front();
  return oldest;
}

// The side without the coordinator stops its ranks.
void NodeSession::on_lost(const std::string& why) {
  if (over_) return;  // it closes when all is said
  if (comes_again_ && !known_) return look_.call_at(Clock::now() + kComeAgain, [this] { come_again(); });
  if (taking_over_) return go_on_looking(why);
  if (may_be_taken_over()) return begin_taking_over(why);
  if (!known_ && !server_ && !leaving_ && may_search())
    return look_.call_at(Clock::now(), [this] { join_again(); });
  over_ = true;
  NodeFailure failure = with_earlier_failure(loss_of_first(why));
  const bool would_restart = is_elastic() && known_ && !leaving_ && !ending_.is_wished() &&
                             worth_restarting(options_.restart, failure.exit_code);
  if (would_restart && RestartCounter(options_.restart, restarts_).has_spent_all(Clock::now()))
    failure.block += no_restart_is_left(options_.restart);
  tell_run(EndedElsewhere{failure.line, failure.exit_code});
  answer(Over{failure, 0});
}

NodeFailure NodeSession::loss_of_first(const std::string& why) const {
  const std::string line = fmt::format("lost {}, which coordinates the run: {}", name_of_first(), why);
  return {.cause = "node_lost",
          .line = line,
          .block = fmt::format("fleetrun: {}\n", line),
          .exit_code = static_cast<int>(ErrorKind::temporary)};
}

NodeFailure NodeSession::with_earlier_failure(const NodeFailure& loss) const {
  return ending_.before(loss, link_->last_received());
}

void NodeSession::reply_to(const Ask& ask) {
  const auto refuse = [&](const std::string& why) {
    send(Answer{ask.id, to_json(JsonValue::object({{"error", why}}))});
  };
  if (!answerer_) return refuse("the node is not ready");
  try {
    send(Answer{ask.id, answerer_(ask.request, ask.sender)});
  } catch (const Error& error) {  // it is longer than a frame
    refuse(error.message());
  }
}

void NodeSession::ask(int node, const std::string& request, const std::string& sender,
                      NodeQuestions::Done done, Clock::duration patience) {
  server_->ask(placed(), node,
               {.id = 0, .request = request, .sender = fmt::format("{} on {}", sender, own_name())},
               std::move(done), patience);
}

JsonValue NodeSession::ranks() const {
  if (!server_) return JsonValue();
  JsonValue ranks = server_->coordinator().ranks();
  return ranks.items.empty() ? JsonValue()
                             : ranks;  // a node that did not manage to take over has its own only
}

std::vector<StandStill> NodeSession::stand_stills() const {
  return server_ ? server_->coordinator().stand_stills() : std::vector<StandStill>();
}

std::vector<std::string> NodeSession::roll_call() const {
  return server_ ? server_->coordinator().roll_call() : std::vector<std::string>();
}

void NodeSession::leave(const NodeFailure& failure) {
  leaving_ = true;
  taking_over_.reset();
  book_.stop();
  if (!link_->is_open()) return;
  if (!over_) {
    send(Failed{attempt_, failure});
    send(Ended{attempt_, failure, JsonValue::list({})});
  }
  run_until(kLeavePatience, [this] { return over_; });
  finish();
}

void NodeSession::run_until(Clock::duration patience, const std::function<bool()>& done) {
  bool late = false;
  Timer deadline(loop_);
  deadline.call_at(Clock::now() + patience, [&late] { late = true; });
  while (!done() && !late) loop_.run_one();
}

void NodeSession::finish() {
  events_ = nullptr;
  over_ = true;
  if (!server_) run_until(kLastAsks, [this] { return !link_->is_open(); });
  link_->close();
  if (server_) server_->finish();
}

}  // namespace fleetrun::launch
