#include "launch/run/run_loop.h"

#include <poll.h>

#include <chrono>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "base/error/error.h"
#include "base/error/exit_codes.h"
#include "base/system/standard_descriptors.h"
#include "launch/nodes/node_key.h"
#include "launch/nodes/places.h"
#include "launch/plan/port_guard.h"
#include "launch/run/announcements.h"
#include "launch/run/fill_report.h"
#include "launch/run/join_nodes.h"
#include "launch/run/prepare_attempt.h"
#include "launch/serve/control_requests.h"
#include "launch/supervise/exit_cause.h"

namespace fleetrun::launch {
namespace {

// For a reader of our output that takes nothing. A pager may pause, but holds up no restart, no stop and no other node.
constexpr Clock::duration kReaderPatience = std::chrono::seconds(2),
                          kPagerPatience = std::chrono::minutes(10);

constexpr auto kTimeForLeft = std::chrono::seconds(1);
constexpr Clock::duration kLongestSilence =
    std::chrono::seconds(2);  // of a node, which the others would take for lost

template <typename... Cases>
struct Overloaded : Cases... {
  using Cases::operator()...;
};
template <typename... Cases>
Overloaded(Cases...) -> Overloaded<Cases...>;  // older versions of clang need to be told

std::vector<int> chosen_signals(const LaunchOptions& options) {
  const auto& signals = options.signals_to_handle.value;
  return signals ? signals->numbers : std::vector<int>();
}

// Over several nodes the Coordinator of the first one decides about restarts (launch/nodes/coordinator.h).
SupervisorOptions supervisor_options(const RunPlan& plan, int first_attempt) {
  const LaunchOptions& options = plan.options;
  return {.stop_signals = chosen_signals(options),
          .grace = options.grace.value,
          .kill_wait = options.kill_wait.value,
          .roll_call_wait = StackDump::kPatience,
          .timeout = options.timeout.value,
          .early_exit_wait = options.early_exit_wait.value,
          .restart = {.most = plan.members ? 0 : options.max_restart.value,
                      .window = options.restart_window.value,
                      .first_delay = options.restart_delay.value,
                      .never_after = options.no_restart_on.value},
          .span = RankSpan{plan.cluster.first_rank(), plan.cluster.world_size()},
          .first_attempt = first_attempt};
}

ProcessGroupOptions group_options(const RunPlan& plan, std::function<void(std::string_view line)> say) {
  return {.ranks = plan.cluster.local_size(),
          .may_start_again = may_start_again(plan.options),
          .use_cgroup = plan.options.cgroup.value != UseCgroup::none,
          .kill_wait = plan.options.kill_wait.value,
          .interactive = plan.options.interactive.value,
          .stop_signals = chosen_signals(plan.options),
          .say = std::move(say)};
}

int first_attempt_of(const NodeSession* nodes) { return nodes == nullptr ? 0 : nodes->placed().attempt; }

RuntimeRanks runtime_ranks(const RunPlan& plan, const NodeSession* nodes, const std::string& run_id) {
  const ClusterSpec& cluster = plan.cluster;
  RuntimeRanks ranks = {.job_text = plan.embedded ? plan.embedded->job_text : "",
                        .here = plan.embedded ? cluster.local_size() : 0,
                        .world = plan.embedded ? cluster.world_size() : 0,
                        .run_id = run_id,
                        .address = cluster.host,
                        .key = {}};
  if (nodes == nullptr) return ranks;
  ranks.address = plan.members->meeting.host;
  ranks.own_addresses = nodes->own_addresses();
  ranks.key = derive_rank_key(nodes->key(), run_id);
  ranks.serves_store = nodes->is_first();
  ranks.may_grow = is_elastic(plan.options);
  return ranks;
}

}  // namespace

RunLoop::RunLoop(const RunPlan& plan, const RunWorld& world, LogFolder& logs, ExitReport& report)
    : plan_(plan),
      logs_(logs),
      report_(report),
      world_(world),
      restarts_(world.nodes == nullptr ? 0 : world.nodes->placed().restarts),
      loop_(world.loop),
      console_(loop_, plan.options.log_level.value),
      support_(loop_, runtime_ranks(plan, world.nodes, report.run_id), say()),
      supervisor_(plan.cluster.local_size(), supervisor_options(plan, first_attempt_of(world.nodes))),
      group_(loop_, events_, group_options(plan, say())),
      signals_(loop_, events_, group_),
      state_{supervisor_.verdict(), group_.records(), support_.pages(), group_.survivors()},
      hangs_(plan, logs),
      roll_call_(loop_, events_, plan.environment, {state_, attempt_, logs, console_}),
      others_(loop_, world.nodes),
      last_words_(loop_, attempt_, logs),
      deaths_(events_, attempt_, logs),
      stragglers_({plan, state_, others_, world.nodes, say()}, report),
      display_(loop_, {plan, logs, state_, console_, world.nodes, others_}),
      disk_(logs, say()),
      control_(world.control),
      metrics_(loop_, plan.options, metrics_source(), say()),
      page_(loop_, {plan, logs, metrics_source()}) {
  watch_front(world.front_fd);
  begin_ticks();
  if (world.nodes != nullptr) connect_to_nodes(*world.nodes);
  answer_requests();
}

bool RunLoop::was_started_by_first_node() const {
  return world_.nodes != nullptr && plan_.options.given_key && !world_.nodes->is_first();
}

MetricsSource RunLoop::metrics_source() const {
  return {state_, report_, [this] { return others_.ranks(); },
          [this] { return !was_started_by_first_node(); }, [this] { return restarts_; }};
}

void RunLoop::connect_to_nodes(NodeSession& nodes) {
  events_.measure_lateness();
  nodes.report_to(events_, say());
  nodes.answer_with([own = run_control()](const std::string& request, const std::string& sender) {
    return own.answer(request, sender);
  });
  shared_.emplace(SharedRun::Sources{nodes, events_, supervisor_, state_, support_, plan_.program.argv, say(),
                                     was_started_by_first_node()});
  shared_control_.emplace(loop_, nodes, run_control());
  look_at_others();
}

void RunLoop::look_at_others() {
  const LaunchOptions& options = plan_.options;
  if (display_.draw_interval() || stragglers_.interval() || options.metrics_port.value ||
      !options.metrics_file.value.empty())
    others_.begin();
}

void RunLoop::answer_requests() {
  control_.answer_with([this, own = run_control()](const std::string& request, const std::string& sender,
                                                   const ControlServer::Reply& reply) {
    if (shared_control_)
      shared_control_->answer(request, sender, reply);
    else
      reply(own.answer(request, sender));
  });
}

RunControl RunLoop::run_control() { return {events_, group_, state_, logs_, attempt_, report_}; }

std::function<void(std::string_view line)> RunLoop::say() {
  return [this](std::string_view line) { console_.say(line); };
}

// Over several nodes the ports are held before an attempt begins, because all nodes begin it together. On one node begin_attempt() does it.
void RunLoop::run() {
  try {
    const int first = state_.verdict.attempt;
    const int ready = shared_ ? hold_ports_and_wait_for_nodes(first) : first;
    perform(supervisor_.start(Clock::now(), ready, own_span()));
    attend();
    while (start_again_with_others()) attend();
    end();
  } catch (const Error& error) {
    group_.end();
    if (shared_) shared_->leave(error, report_);
    metrics_.finish(report_.whole ? report_.whole->exit_code : error.exit_code());
    throw;
  }
  if (shared_) shared_->finish();
}

// Events come from the group (deaths), the signals, the ticks, the roll call, the control socket and the other nodes. The Supervisor
// only decides; this object alone carries out what it decides.
void RunLoop::attend() {
  while (!supervisor_.done()) {
    const Event event = events_.next();
    if (postpone_after_deaths(event)) continue;
    for (const Event& ready : deaths_.take(event, state_.verdict)) handle(ready);
  }
}

void RunLoop::handle(const Event& event) {
  if (const auto step = highest_step(state_.pages)) supervisor_.saw_step(*step);
  const bool is_first_failure = state_.verdict.cause == Cause::finished && !state_.verdict.asked_to_end;
  if (is_first_failure && lacks_only_last_checkpoint(event, state_.pages)) supervisor_.forbid_restarts();
  const Actions actions = supervisor_.on(event, events_.noticed_at());
  last_words_.look(state_.verdict);
  display_.show(event);
  if (shared_) shared_->tell(event);
  perform(actions);
}

// If a rank here is dead by now, it died before the news of an end elsewhere came: its death is handled first. look_for_deaths() puts
// the death into the queue, and the news goes back there after it.
bool RunLoop::postpone_after_deaths(const Event& event) {
  if (!std::holds_alternative<EndedElsewhere>(event) || !group_.look_for_deaths()) return false;
  events_.push(event);
  return true;
}

void RunLoop::watch_front(int front_fd) {
  loop_.watch_readable(front_fd, [this, front_fd] {  // nobody writes there: it can only be the end
    loop_.forget(front_fd);
    events_.push(FrontLost{});
  });
}

// What is looked at again and again. All else happens by itself: a signal, a death, a line in a log, a request at the socket.
void RunLoop::begin_ticks() {
  if (const auto interval = hangs_.interval()) loop_.call_every(*interval, [this] { look_for_hang(); });
  if (const auto interval = display_.draw_interval())
    loop_.call_every(*interval, [this] { display_.draw(); });
  if (const auto interval = stragglers_.interval())
    loop_.call_every(*interval, [this] { stragglers_.look(Clock::now()); });
  loop_.call_every(EventQueue::kBeat, [this] { events_.notice_standstill(); });
  loop_.call_every(LogDisk::kInterval, [this] {
    logs_.reserve();
    disk_.look();
  });
}

void RunLoop::look_for_hang() {
  if (supervisor_.suspended()) return hangs_.forgive();
  const SignsOfLife elsewhere = shared_ ? shared_->signs_elsewhere() : SignsOfLife();
  if (const auto why = hangs_.look(state_, elsewhere, Clock::now())) events_.push(HangFound{*why});
  if (shared_) shared_->tell_signs(hangs_.signs());
}

void RunLoop::perform(const Actions& actions) {
  std::vector<PassOn> left_alone;
  for (const Action& action : actions)
    std::visit(Overloaded{[&](const StartAttempt& start) { begin_attempt(start.attempt); },
                          [&](const EndAttempt& ended) { end_attempt(ended.delay); },
                          [&](const CallRoll&) { roll_call_.call(); },
                          [&](const WakeAt& wake) { events_.push_at(wake.time, Woke{}); },
                          [&](const PassOn& signal) {
                            if (!group_.pass_on(signal.rank, signal.signal)) left_alone.push_back(signal);
                          },
                          [&](const auto& other) { group_.act(other); }},
               action);
  announce_left_alone(left_alone, console_);
}

// The same number returns without other nodes. While this waits, those who ask get the verdict of the previous attempt.
int RunLoop::hold_ports_and_wait_for_nodes(int number) {
  while (true) {
    take_places();
    if (number > 0) support_.begin_attempt(number, plan_.cluster.world_size());
    // The ports of the previous attempt are free first, and those of an attempt that did not begin. One that the user named is taken again.
    attempt_ = {};
    ports_ = {};
    ports_ = hold_ports(plan_.cluster);
    const auto instead = shared_ ? shared_->wait_for_nodes(number, ports_, report_) : std::nullopt;
    if (!instead) return number;
    announce_restart_before_start(instead->restarts, plan_.options,
                                  instead->failure ? instead->failure->line : "the nodes have changed",
                                  console_);
    number = instead->attempt;
  }
}

void RunLoop::take_places() {
  if (!shared_ || !world_.nodes->take_places()) return;
  const Placed& placed = world_.nodes->placed();
  const RankSpan before = own_span();
  write_places(logs_, placed);
  *world_.cluster = with_others(*world_.cluster, plan_.options, placed);  // which plan_ refers to
  restarts_ = placed.restarts;
  others_.renumber();
  if (world_.nodes->is_first()) become_first();
  if (own_span() != before) announce_places(plan_.cluster, console_);
}

// Does nothing on a node that was the first one before.
void RunLoop::become_first() {
  support_.serve_store(world_.nodes->own_address(), world_.nodes->own_addresses());
  look_at_others();
}

RankSpan RunLoop::own_span() const { return {plan_.cluster.first_rank(), plan_.cluster.world_size()}; }

void RunLoop::begin_attempt(int number) {
  if (!shared_) {
    hold_ports_and_wait_for_nodes(number);
    restarts_ = number;
  }
  if (!report_.attempts.empty() && !replace_removed_log_folder())
    logs_.keep_train_report(report_.attempts.back().number);
  if (plan_.embedded && own_span().first == 0) logs_.prepare_history();
  attempt_ = prepare_attempt(plan_, {report_.run_id, number, restarts_}, std::move(ports_), logs_, support_);
  if (!std::exchange(report_.has_begun, true)) display_.begin_run(attempt_.workers);
  display_.begin_attempt(number, report_.host);
  hangs_.follow_new_logs();
  last_words_.begin_attempt();
  stragglers_.begin_attempt();
  roll_call_.forget();
  report_.memory_before = read_memory_cgroup();
  group_.start(attempt_);
}

// The Supervisor begins another attempt after the delay.
void RunLoop::end_attempt(Clock::duration delay) {
  end_processes();
  report_attempt();
  archive_and_announce(delay, state_.verdict.attempt + 1);
}

// The other nodes wait for this one: then a slow reader, too, has only kReaderPatience in all.
void RunLoop::show_end_of_attempt() {
  const Patience patience = shared_ ? patience_in_all(kReaderPatience) : this->patience(kReaderPatience);
  if (!display_.show_end(report_, patience))
    console_.say(fmt::format("our output is read too slowly; the rest of attempt {} is in {}/attempt-{}/",
                             state_.verdict.attempt, logs_.path(), state_.verdict.attempt));
}

void RunLoop::archive_and_announce(Clock::duration delay, int restarts) {
  show_end_of_attempt();
  record_attempt(logs_, report_);
  if (replace_removed_log_folder())
    report_.attempts.back().logs.clear();
  else
    archive_attempt(logs_, report_);
  const bool regroups = shared_ && restarts == restarts_;  // a node came: that is not a restart
  if (regroups)
    announce_regrouping(report_.attempts.back(), console_);
  else
    announce_restart(restarts, plan_.options, delay, report_.attempts.back(), console_);
}

// Somebody has tidied up, or another run was to begin with an empty folder. That does not end this run.
bool RunLoop::replace_removed_log_folder() {
  if (!logs_.is_removed()) return false;
  const std::string removed = logs_.path();
  logs_.make_again();
  logs_.join_run(report_.run_id);
  control_.listen_again();
  console_.say(fmt::format("{}/ was removed, and the logs so far are lost; the next ones are in {}/", removed,
                           logs_.path()));
  return true;
}

// Over several nodes: asks the Coordinator for another attempt, and begins it when all nodes may. The Coordinator waits for the delay.
// False: the run is over.
bool RunLoop::start_again_with_others() {
  if (!shared_) return false;
  if (state_.verdict.cause == Cause::finished)
    group_.release();  // what finished ranks have left behind may work for those of the other nodes
  else
    end_processes();
  report_attempt();
  const auto again = shared_->end_attempt(report_);
  end_processes();
  fill_survivors(state_, report_);
  if (!again) return false;
  archive_and_announce(std::chrono::nanoseconds(again->delay), again->restarts);
  if (again->failure) console_.show(again->failure->block);
  restarts_ = again->restarts;
  const int number = hold_ports_and_wait_for_nodes(again->attempt);
  perform(supervisor_.start_again(number, own_span(), Clock::now()));
  return true;
}

void RunLoop::end() {
  end_processes();
  if (shared_control_) shared_control_->finish();
  others_.finish();
  control_.close();
  disk_.look();
  if (is_archived(state_.verdict.attempt, report_))  // the run ended in the pause after it
    fill_end_before_restart(state_.verdict, report_);
  else if (!report_.whole)  // over several nodes the attempt is in the report by now
    report_attempt();
  if (shared_) fill_stand_stills(world_.nodes->stand_stills(), report_);
  report_.saved = saved_by(state_.pages, own_span().first == 0);
  fill_going_on(logs_, plan_.stop, report_);
  report_.ended = Moment::now();
  metrics_.finish(report_.verdict.exit_code);
  if (!logs_.is_removed()) {  // else the LogDisk has said so
    try_to_write_report();    // before the console, which may take its time
    try_to_write_page();
  }
  const bool is_stopped = report_.verdict.cause == Cause::stopped;  // by somebody who does not want to wait
  const Patience patience = is_stopped ? patience_in_all(kReaderPatience)
                                       : this->patience(shared_ ? kReaderPatience : kPagerPatience);
  display_.end_run(report_, patience);
}

void RunLoop::report_attempt() {
  report_.saved = saved_by(state_.pages, own_span().first == 0);
  fill_attempt(state_, attempt_, logs_, last_words_, report_);
  if (shared_ && state_.verdict.cause == Cause::finished) {
    last_words_.note_finished(state_.verdict);
    fill_error_before_end(last_words_, report_);
  }
  report_.error_was_shown =
      plan_.embedded && outputs_meet() && has_shown_error(report_, plan_.cluster.console);
  const bool called = !roll_call_.collectives().ranks.empty();  // then the moment of the roll call counts
  fill_collectives(
      called ? roll_call_.collectives() : read_collectives(state_.pages, plan_.cluster.first_rank()), logs_,
      report_);
  report_.roll_call = roll_call_.lines();
  fill_limit(attempt_.workers.front().environment, report_);
  report_.log_disk_full = disk_.was_full();
}

// A run does not fail because its report does not fit on the disk.
void RunLoop::try_to_write_report() {
  logs_.release_reserve();
  try {
    write_report(logs_, report_);
  } catch (const Error& error) {
    console_.say(error.message());
  }
}

// Neither does it fail because of its page.
void RunLoop::try_to_write_page() {
  try {
    page_.finish();
  } catch (const Error& error) {
    console_.say(error.message());
  }
}

// What ranks have left behind may clean up, unless somebody is in a hurry or the ranks had to be killed.
void RunLoop::end_processes() {
  if (state_.verdict.killed) return group_.end();
  last_words_.finish(group_);
  const Clock::duration grace = plan_.options.grace.value;
  const Patience patience =
      patience_in_all(shared_ ? std::min<Clock::duration>(grace, kLongestSilence) : grace);
  // Over several nodes the news of the others must wait until this attempt is over.
  const auto pause = [this](Clock::duration time) {
    return shared_ ? std::this_thread::sleep_for(time) : loop_.run_for(time);
  };
  const auto interrupted = [&] { return events_.holds_request_to_end() || patience.interrupted(); };
  group_.end(kTimeForLeft, {.latest = Clock::now() + patience.without_progress,
                            .pause = pause,
                            .interrupted = interrupted,
                            .tell = [this](const std::vector<pid_t>& readers) {
                              announce_pipe_readers(readers, console_);
                            }});
}

Patience RunLoop::patience_in_all(Clock::duration time) {
  return {time, [latest = Clock::now() + time, interrupted = patience(time).interrupted] {
            return Clock::now() >= latest || interrupted();
          }};
}

Patience RunLoop::patience(Clock::duration time) {
  // One signal ends all that is shown with this patience.
  return {time, [this, ends = false]() mutable { return ends = ends || signals_.take() || front_is_gone(); }};
}

// Asks the kernel, because the loop may no longer run.
bool RunLoop::front_is_gone() const {
  pollfd front{.fd = world_.front_fd, .events = POLLIN, .revents = 0};  // nobody writes there
  return ::poll(&front, 1, 0) > 0;
}

}  // namespace fleetrun::launch
