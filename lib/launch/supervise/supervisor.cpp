#include "launch/supervise/supervisor.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/error/error.h"
#include "base/error/exit_codes.h"
#include "launch/process/signals.h"

namespace fleetrun::launch {
namespace {

// Of the first rank that failed.
Cause cause_of(const WorkerExited& end) {
  return end.status.how == ExitStatus::How::exited ? Cause::exited : Cause::killed;
}

}  // namespace

Supervisor::Supervisor(int ranks, SupervisorOptions options)
    : options_(std::move(options)), restarts_(options_.restart) {
  verdict_.ranks.resize(static_cast<std::size_t>(ranks));
  verdict_.span = options_.span.value_or(RankSpan{0, ranks});
  verdict_.attempt = options_.first_attempt;
}

Actions Supervisor::start(TimePoint now) {
  if (options_.timeout) clocks_.timeout = now + *options_.timeout;
  return begin_attempt(now);
}

Actions Supervisor::start(TimePoint now, int attempt, const RankSpan& span) {
  verdict_.attempt = attempt;
  verdict_.span = span;
  return start(now);
}

Actions Supervisor::start_again(TimePoint now) {
  forget_attempt();
  return begin_attempt(now);
}

Actions Supervisor::start_again(int attempt, const RankSpan& span, TimePoint now) {
  forget_attempt();
  verdict_.attempt = attempt;
  verdict_.span = span;
  return begin_attempt(now);
}

void Supervisor::forget_attempt() {
  verdict_ = {.attempt = verdict_.attempt + 1,
              .ranks = std::vector<RankVerdict>(verdict_.ranks.size()),
              .span = verdict_.span};
}

Actions Supervisor::on(const Event& event, TimePoint now) {
  if (done()) return {};
  return std::visit([&](const auto& what) { return handle(what, now); }, event);
}

Actions Supervisor::begin_attempt(TimePoint now) {
  phase_ = Phase::running;
  restart_in_.reset();
  clocks_.early_exit.reset();
  clocks_.doubt.reset();
  asked_by_ = 0;
  finished_elsewhere_.reset();
  clocks_.started = now;
  if (!clocks_.timeout) return {StartAttempt{verdict_.attempt}};
  return {WakeAt{*clocks_.timeout}, StartAttempt{verdict_.attempt}};
}

Actions Supervisor::handle(const WorkerExited& event, TimePoint now) {
  RankVerdict& rank = verdict_.ranks.at(static_cast<std::size_t>(event.rank));
  rank.status = event.status;
  rank.ended = now;
  if (phase_ != Phase::running) {
    rank.role = event.by_itself                      ? Role::failed_too
                : obeyed(event.status, stop_signal_) ? Role::stopped
                                                     : Role::failed_after;
    rank.leaves_processes = event.leaves_processes;
    return end_of_ranks(now);
  }
  if (event.status.ok()) {
    rank.role = Role::finished;
    return any_running() ? await_others(now) : end_of_ranks(now);
  }
  rank.role = Role::cause;
  rank.leaves_processes = event.leaves_processes;
  set_cause(cause_of(event), event.status.exit_code());
  verdict_.rank = event.rank;
  verdict_.origin = event.origin;
  if (may_be_one_of_many(event)) clocks_.doubt = clocks_.time(now) + kTimeForSignals;
  return stop(now);
}

// Its exit code names a signal that would end the run, and that fleetrun did not send.
bool Supervisor::may_be_one_of_many(const WorkerExited& end) const {
  const int signal = end.status.exit_code() - kSignalExitCode;
  return end.origin.empty() && (ends_a_run(signal) || is_chosen(signal));
}

Actions Supervisor::handle(const LeftEnded& event, TimePoint now) {
  verdict_.ranks.at(static_cast<std::size_t>(event.rank)).leaves_processes = false;
  return stopping() ? end_of_ranks(now) : Actions();
}

// A rank has finished: those that still run have some time for it, too.
Actions Supervisor::await_others(TimePoint now) {
  if (!options_.early_exit_wait || clocks_.early_exit) return {};
  clocks_.early_exit = clocks_.time(now) + *options_.early_exit_wait;
  return {WakeAt{*clocks_.early_exit}};
}

Actions Supervisor::handle(const FinishedElsewhere& event, TimePoint now) {
  if (phase_ != Phase::running || clocks_.early_exit) return {};
  finished_elsewhere_ = event.rank;
  return await_others(now);
}

Actions Supervisor::handle(const SpawnFailed& event, TimePoint now) {
  for (std::size_t i = static_cast<std::size_t>(event.rank); i < verdict_.ranks.size(); ++i)
    verdict_.ranks[i] = {.role = Role::never_started, .status = {}, .ended = now};
  if (phase_ != Phase::running) return end_of_ranks(now);
  set_cause(Cause::spawn, spawn_exit_code(event.error));
  verdict_.rank = event.rank;
  verdict_.spawn_error = event.error;
  return stop(now);
}

Actions Supervisor::handle(const SignalReceived& event, TimePoint now) {
  if (!ends_the_run(event.signal)) return obey(event.signal, now);
  if (phase_ == Phase::running) stop_signal_ = signal_for_ranks(event.signal);
  return end_by_signal(event.signal, now);
}

bool Supervisor::is_chosen(int signal) const {
  const auto& chosen = options_.stop_signals;
  return std::find(chosen.begin(), chosen.end(), signal) != chosen.end();
}

bool Supervisor::ends_the_run(int signal) const { return is_chosen(signal) || !is_obeyed_by_a_run(signal); }

// A program that Ctrl-C interrupts in a terminal is interrupted here, too.
int Supervisor::signal_for_ranks(int signal) const {
  const bool same = signal == SIGINT || (is_chosen(signal) && !ends_a_run(signal));
  return same ? signal : SIGTERM;
}

Actions Supervisor::handle(const SignalElsewhere& event, TimePoint now) { return obey(event.signal, now); }

Actions Supervisor::obey(int signal, TimePoint now) {
  switch (signal) {
    case SIGTSTP:
      return suspend(now);
    case SIGCONT:
      return go_on(now);
    case SIGQUIT:
      return phase_ == Phase::running ? Actions{CallRoll{}} : Actions();
    case SIGUSR1:
    case SIGUSR2:
      return for_each_running<PassOn>(signal);
    default:
      return {};
  }
}

Actions Supervisor::end_by_signal(int signal, TimePoint now) {
  restarts_.forbid();
  suspended_ = false;
  if (restart_in_ && phase_ != Phase::pausing) verdict_.restart_stopped_by = signal;
  restart_in_.reset();
  const bool asked_before = asked_by_ != 0;
  if (!asked_before) asked_by_ = signal;
  if (phase_ == Phase::running) {
    set_cause(Cause::stopped, kSignalExitCode + signal);
    verdict_.signal = signal;
    return stop(now);
  }
  if (stopping() && clocks_.doubt) return take_for_stop(signal, now);
  if (phase_ == Phase::diagnosing) return stop(now);
  if (phase_ == Phase::pausing) {
    verdict_.signal = signal;
    return end_pause(Cause::stopped, kSignalExitCode + signal);
  }
  if (stopping() && signal == SIGINT && asked_before) return kill(now);
  return clocks_.stand_still() ? go_on(now) : Actions();  // what does not run will never end
}

// The rank that died first got the signal, too. All ranks have been asked to end.
Actions Supervisor::take_for_stop(int signal, TimePoint now) {
  clocks_.doubt.reset();
  stop_signal_ = signal_for_ranks(signal);
  verdict_.ranks.at(static_cast<std::size_t>(*verdict_.rank)).role = Role::stopped;
  verdict_.rank.reset();
  verdict_.crash_loop = false;
  verdict_.restart_stopped_by = 0;
  verdict_.signal = signal;
  set_cause(Cause::stopped, kSignalExitCode + signal);
  Actions actions = clocks_.stand_still() ? go_on(now) : Actions();  // what does not run will never end
  for (const Action& action : end_of_ranks(now)) actions.push_back(action);
  return actions;
}

Actions Supervisor::suspend(TimePoint now) {
  suspended_ = true;
  if (clocks_.stand_still()) return {};
  clocks_.standing_since = now;
  Actions actions = for_each_there<Pause>();
  if (actions.empty()) return actions;
  hold_at_ = now + options_.hold_wait;
  actions.push_back(WakeAt{*hold_at_});
  return actions;
}

Actions Supervisor::go_on(TimePoint now) {
  suspended_ = false;
  Actions actions = for_each_there<Resume>();
  if (!clocks_.stand_still()) return actions;
  start_clocks(now);
  for (const Action& action : wake_ups()) actions.push_back(action);
  if (phase_ != Phase::diagnosing || !std::exchange(roll_called_, false)) return actions;
  for (const Action& action : stop(now)) actions.push_back(action);
  return actions;
}

void Supervisor::start_clocks(TimePoint now) {
  if (!clocks_.stand_still()) return;
  const Clock::duration stood = clocks_.go_on(now);
  if (verdict_.asked_to_end) *verdict_.asked_to_end += stood;
  hold_at_.reset();
}

Actions Supervisor::wake_ups() const {
  Actions actions;
  for (const auto& time : {clocks_.timeout, clocks_.early_exit, clocks_.doubt})
    if (time) actions.push_back(WakeAt{*time});
  if (phase_ != Phase::running) actions.push_back(WakeAt{clocks_.deadline});
  return actions;
}

// The ranks may have worked meanwhile: their time goes on.
Actions Supervisor::handle(const StoodStill& event, TimePoint) {
  if (clocks_.stand_still()) return {};
  clocks_.put_off(event.time);
  if (verdict_.asked_to_end) *verdict_.asked_to_end += event.time;
  return wake_ups();
}

Actions Supervisor::handle(const EndedElsewhere& event, TimePoint now) {
  if (phase_ == Phase::diagnosing) return event.call_roll ? Actions() : stop(now);
  if (phase_ != Phase::running) return {};
  set_cause(Cause::elsewhere, event.exit_code);
  stop_signal_ = signal_for_ranks(event.signal);
  if (event.call_roll) return diagnose(event.why, now);
  verdict_.why = event.why;
  return stop(now);
}

Actions Supervisor::handle(const HangFound& event, TimePoint now) {
  if (phase_ != Phase::running) return {};
  set_cause(Cause::hung);
  return diagnose(event.why, now);
}

Actions Supervisor::handle(const RollCalled&, TimePoint now) {
  if (phase_ != Phase::diagnosing) return {};
  if (!clocks_.stand_still()) return stop(now);
  roll_called_ = true;
  return {};
}

Actions Supervisor::handle(const FrontLost&, TimePoint now) {
  restarts_.forbid();
  suspended_ = false;
  restart_in_.reset();
  if (phase_ == Phase::pausing) return end_pause(Cause::front_lost);
  // The ranks may be saving: Python's subprocess.run() waits 0.25 s after Ctrl-C, and then kills what it has started.
  if (stopping()) return clocks_.stand_still() ? go_on(now) : Actions();
  if (phase_ == Phase::running) set_cause(Cause::front_lost);
  return kill(now);
}

Actions Supervisor::handle(const Woke&, TimePoint now) {
  if (hold_at_ && now >= *hold_at_) {
    hold_at_.reset();
    return {Hold{}};
  }
  if (clocks_.stand_still()) return {};
  if (phase_ == Phase::running) return wake_while_running(now);
  if (phase_ == Phase::pausing && clocks_.timeout && now >= *clocks_.timeout) {
    verdict_.why = describe_timeout();
    return end_pause(Cause::timed_out);
  }
  if (stopping()) return wake_while_stopping(now);
  if (now < clocks_.deadline) return {};
  switch (phase_) {
    case Phase::diagnosing:
      return stop(now);
    case Phase::pausing:
      return start_again(now);
    default:
      phase_ = Phase::ended;
      return {};
  }
}

Actions Supervisor::wake_while_running(TimePoint now) {
  if (clocks_.timeout && now >= *clocks_.timeout) {
    set_cause(Cause::timed_out);
    return diagnose(describe_timeout(), now);
  }
  if (clocks_.early_exit && now >= *clocks_.early_exit) return fail_early_exit(now);
  return {};
}

Actions Supervisor::wake_while_stopping(TimePoint now) {
  if (clocks_.doubt && now >= *clocks_.doubt) clocks_.doubt.reset();
  if (!any_there()) return clocks_.doubt ? Actions() : end_of_ranks(now);
  if (now < clocks_.deadline) return {};
  return phase_ == Phase::stopping ? stop_groups(now) : kill(now);
}

Actions Supervisor::fail_early_exit(TimePoint now) {
  if (!finished_elsewhere_) verdict_.rank = first_finished(verdict_);
  const int finished = finished_elsewhere_ ? *finished_elsewhere_ : verdict_.number_of(*verdict_.rank);
  set_cause(Cause::early_exit);
  return diagnose(fmt::format("rank {} finished {:g} s ago and others still run", finished,
                              in_seconds(*options_.early_exit_wait)),
                  now);
}

void Supervisor::set_cause(Cause cause, int code_of_event) {
  launch::set_cause(verdict_, cause, code_of_event);
}

// The run is lost, but first what every rank is doing.
Actions Supervisor::diagnose(std::string why, TimePoint now) {
  verdict_.why = std::move(why);
  phase_ = Phase::diagnosing;
  roll_called_ = false;
  clocks_.deadline = now + options_.roll_call_wait;
  return {WakeAt{clocks_.deadline}, CallRoll{}};
}

// Ends a rank's suspension, too: it is to end, and then to have its grace.
Actions Supervisor::stop(TimePoint now) {
  start_clocks(now);
  decide_restart(now);
  verdict_.asked_to_end = now;
  phase_ = Phase::stopping;
  clocks_.deadline = now + options_.grace;
  if (!any_there()) return end_of_ranks(now);
  Actions actions = for_each_running<Terminate>(stop_signal_);
  actions.push_back(WakeAt{clocks_.deadline});
  if (clocks_.doubt) actions.push_back(WakeAt{*clocks_.doubt});
  return actions;
}

void Supervisor::decide_restart(TimePoint now) {
  if (!facts_of(verdict_.cause).restarts) return;
  restart_in_ = restarts_.after(verdict_.exit_code, now - clocks_.started, now, step_);
  if (restart_in_ || !restarts_.crash_loop()) return;
  verdict_.crash_loop = true;
  verdict_.exit_code = static_cast<int>(ErrorKind::gave_up);
}

Actions Supervisor::stop_groups(TimePoint now) {
  phase_ = Phase::stopping_groups;
  clocks_.deadline = now + options_.group_grace;
  Actions actions = for_each_there<TerminateGroup>();
  actions.push_back(WakeAt{clocks_.deadline});
  return actions;
}

Actions Supervisor::kill(TimePoint now) {
  start_clocks(now);
  verdict_.killed = now;
  phase_ = Phase::killing;
  clocks_.deadline = now + options_.kill_wait;
  for (RankVerdict& rank : verdict_.ranks) rank.killed = rank.killed || is_still_there(rank);
  Actions actions = for_each_there<Kill>();
  if (any_running()) {
    actions.push_back(WakeAt{clocks_.deadline});
  } else {
    for (const Action& action : end_of_ranks(now)) actions.push_back(action);
  }
  return actions;
}

Actions Supervisor::end_of_ranks(TimePoint now) {
  if (any_running() || (stopping() && any_there())) return {};
  if (phase_ == Phase::diagnosing) return {};  // its end comes by RollCalled, and decides about a restart
  if (stopping() && clocks_.doubt) return {WakeAt{*clocks_.doubt}};
  if (!restart_in_) {
    phase_ = Phase::ended;
    return {};
  }
  phase_ = Phase::pausing;
  if (suspended_) clocks_.standing_since = now;
  clocks_.deadline = now + *restart_in_;
  Actions actions = {EndAttempt{*restart_in_}};
  for (const Action& action : wake_ups()) actions.push_back(action);  // the timeout may have passed meanwhile
  return actions;
}

bool Supervisor::any_running() const {
  return std::any_of(verdict_.ranks.begin(), verdict_.ranks.end(),
                     [](const RankVerdict& rank) { return rank.role == Role::running; });
}

bool Supervisor::any_there() const {
  return std::any_of(verdict_.ranks.begin(), verdict_.ranks.end(), is_still_there);
}

// Also for a rank whose leader has ended and has left processes.
template <typename Act>
Actions Supervisor::for_each_there() const {
  Actions actions;
  for (std::size_t i = 0; i < verdict_.ranks.size(); ++i)
    if (is_still_there(verdict_.ranks[i])) actions.push_back(Act{static_cast<int>(i)});
  return actions;
}

template <typename Act, typename... More>
Actions Supervisor::for_each_running(More... more) const {
  Actions actions;
  for (std::size_t i = 0; i < verdict_.ranks.size(); ++i)
    if (verdict_.ranks[i].role == Role::running) actions.push_back(Act{static_cast<int>(i), more...});
  return actions;
}

}  // namespace fleetrun::launch
