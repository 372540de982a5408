#include "launch/supervise/supervisor.h"

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "launch/process/signals.h"

namespace fleetrun::launch {
namespace {

int spawn_exit_code(int error) {
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return static_cast<int>(ErrorKind::not_found);
    case EACCES:
    case ENOEXEC:
    case EISDIR:
      return static_cast<int>(ErrorKind::not_executable);
    default:
      return static_cast<int>(ErrorKind::os);
  }
}

// Ended by what we sent, or with a code that means so.
bool obeyed(const ExitStatus& status, int stop_signal) {
  return status.ok() || status.exit_code() == 128 + stop_signal || status.exit_code() == 128 + SIGKILL;
}

}  // namespace

Supervisor::Supervisor(int ranks, SupervisorOptions options)
    : options_(std::move(options)), restarts_(options_.restart) {
  verdict_.ranks.resize(static_cast<std::size_t>(ranks));
}

Actions Supervisor::start(TimePoint now) {
  if (options_.timeout) timeout_at_ = now + *options_.timeout;
  return begin_attempt(now);
}

Actions Supervisor::on(const Event& event, TimePoint now) {
  if (done()) return {};
  return std::visit([&](const auto& what) { return handle(what, now); }, event);
}

Actions Supervisor::begin_attempt(TimePoint now) {
  phase_ = Phase::running;
  restart_in_.reset();
  early_exit_at_.reset();
  started_ = now;
  if (!timeout_at_) return {StartAttempt{verdict_.attempt}};
  return {WakeAt{*timeout_at_}, StartAttempt{verdict_.attempt}};
}

Actions Supervisor::handle(const WorkerExited& event, TimePoint now) {
  RankVerdict& rank = verdict_.ranks.at(static_cast<std::size_t>(event.rank));
  rank.status = event.status;
  rank.ended = now;
  if (phase_ != Phase::running) {
    rank.role = obeyed(event.status, stop_signal_) ? Role::stopped : Role::failed_after;
    return end_of_ranks(now);
  }
  if (event.status.ok()) {
    rank.role = Role::finished;
    if (!any_running() || !options_.early_exit_wait || early_exit_at_) return end_of_ranks(now);
    early_exit_at_ = still_since_.value_or(now) + *options_.early_exit_wait;
    return {WakeAt{*early_exit_at_}};
  }
  rank.role = Role::cause;
  verdict_.cause = event.status.how == ExitStatus::How::exited ? Cause::exited : Cause::killed;
  verdict_.rank = event.rank;
  verdict_.sender = event.sender;
  verdict_.exit_code = event.status.exit_code();
  return stop(now);
}

Actions Supervisor::handle(const SpawnFailed& event, TimePoint now) {
  for (std::size_t i = static_cast<std::size_t>(event.rank); i < verdict_.ranks.size(); ++i)
    verdict_.ranks[i] = {.role = Role::never_started, .status = {}, .ended = now};
  if (phase_ != Phase::running) return end_of_ranks(now);
  verdict_.cause = Cause::spawn;
  verdict_.rank = event.rank;
  verdict_.spawn_error = event.error;
  verdict_.exit_code = spawn_exit_code(event.error);
  return stop(now);
}

Actions Supervisor::handle(const SignalReceived& event, TimePoint now) {
  const auto& chosen = options_.stop_signals;
  if (phase_ == Phase::running && std::find(chosen.begin(), chosen.end(), event.signal) != chosen.end())
    stop_signal_ = ends_a_run(event.signal) ? SIGTERM : event.signal;
  if (stop_signal_ == event.signal) return end_by_signal(event.signal, now);
  switch (event.signal) {
    case SIGTSTP:
      return suspend(now);
    case SIGCONT:
      return go_on(now);
    case SIGQUIT:
      return phase_ == Phase::running ? Actions{CallRoll{}} : Actions();
    case SIGUSR1:
    case SIGUSR2:
      return for_each_running<PassOn>(event.signal);
    default:
      return end_by_signal(event.signal, now);
  }
}

Actions Supervisor::end_by_signal(int signal, TimePoint now) {
  no_restart_ = true;
  suspended_ = false;
  restart_in_.reset();
  if (phase_ == Phase::running) {
    verdict_.cause = Cause::stopped;
    verdict_.signal = signal;
    verdict_.exit_code = 128 + signal;
    return stop(now);
  }
  if (phase_ == Phase::diagnosing) return stop(now);
  if (phase_ == Phase::pausing) phase_ = Phase::ended;
  const bool stopping = phase_ == Phase::stopping || phase_ == Phase::stopping_groups;
  if (stopping && signal == SIGINT) return kill(now);
  return still_since_ ? go_on(now) : Actions();  // what does not run will never end
}

Actions Supervisor::suspend(TimePoint now) {
  suspended_ = true;
  if (still_since_) return {};
  still_since_ = now;
  Actions actions = for_each_running<Pause>();
  if (actions.empty()) return actions;
  hold_at_ = now + options_.hold_wait;
  actions.push_back(WakeAt{*hold_at_});
  return actions;
}

Actions Supervisor::go_on(TimePoint now) {
  suspended_ = false;
  Actions actions = for_each_running<Resume>();
  if (!still_since_) return actions;
  start_clocks(now);
  for (const Action& action : wake_ups()) actions.push_back(action);
  if (phase_ != Phase::diagnosing || !std::exchange(roll_called_, false)) return actions;
  for (const Action& action : stop(now)) actions.push_back(action);
  return actions;
}

void Supervisor::start_clocks(TimePoint now) {
  if (!still_since_) return;
  const Clock::duration stood = now - *std::exchange(still_since_, std::nullopt);
  hold_at_.reset();
  started_ += stood;
  deadline_ += stood;
  if (verdict_.asked_to_end) *verdict_.asked_to_end += stood;
  if (timeout_at_) *timeout_at_ += stood;
  if (early_exit_at_) *early_exit_at_ += stood;
}

Actions Supervisor::wake_ups() const {
  Actions actions;
  for (const auto& time : {timeout_at_, early_exit_at_})
    if (time) actions.push_back(WakeAt{*time});
  if (phase_ != Phase::running) actions.push_back(WakeAt{deadline_});
  return actions;
}

Actions Supervisor::handle(const StoodStill& event, TimePoint now) {
  if (still_since_) return {};  // the clocks stand still anyway
  still_since_ = now - event.time;
  start_clocks(now);
  return wake_ups();
}

Actions Supervisor::handle(const HangFound& event, TimePoint now) {
  if (phase_ != Phase::running) return {};
  return diagnose(Cause::hung, ErrorKind::temporary, event.why, now);
}

Actions Supervisor::handle(const RollCalled&, TimePoint now) {
  if (phase_ != Phase::diagnosing) return {};
  if (!still_since_) return stop(now);
  roll_called_ = true;
  return {};
}

Actions Supervisor::handle(const FrontLost&, TimePoint now) {
  no_restart_ = true;
  suspended_ = false;
  restart_in_.reset();
  if (phase_ == Phase::running) {
    verdict_.cause = Cause::front_lost;
    verdict_.exit_code = 128 + SIGKILL;
  }
  return kill(now);
}

Actions Supervisor::handle(const Woke&, TimePoint now) {
  if (hold_at_ && now >= *hold_at_) {
    hold_at_.reset();
    return {Hold{}};
  }
  if (still_since_) return {};
  if (phase_ == Phase::running) return wake_while_running(now);
  if (phase_ == Phase::pausing && timeout_at_ && now >= *timeout_at_) {  // no rank is left to be stopped
    verdict_.cause = Cause::timed_out;
    verdict_.why = fmt::format("--timeout: {:g} s have passed", in_seconds(*options_.timeout));
    verdict_.exit_code = static_cast<int>(ErrorKind::timeout);
    restart_in_.reset();
    phase_ = Phase::ended;
    return {};
  }
  if (now < deadline_) return {};
  switch (phase_) {
    case Phase::diagnosing:
      return stop(now);
    case Phase::stopping:
      return stop_groups(now);
    case Phase::stopping_groups:
      return kill(now);
    case Phase::pausing:
      verdict_ = {.attempt = verdict_.attempt + 1, .ranks = std::vector<RankVerdict>(verdict_.ranks.size())};
      return begin_attempt(now);
    default:
      phase_ = Phase::ended;
      return {};
  }
}

Actions Supervisor::wake_while_running(TimePoint now) {
  if (timeout_at_ && now >= *timeout_at_)
    return diagnose(Cause::timed_out, ErrorKind::timeout,
                    fmt::format("--timeout: {:g} s have passed", in_seconds(*options_.timeout)), now);
  if (early_exit_at_ && now >= *early_exit_at_) return fail_early_exit(now);
  return {};
}

Actions Supervisor::fail_early_exit(TimePoint now) {
  const auto first = std::min_element(
      verdict_.ranks.begin(), verdict_.ranks.end(), [](const RankVerdict& a, const RankVerdict& b) {
        return a.role == Role::finished && (b.role != Role::finished || a.ended < b.ended);
      });
  verdict_.rank = static_cast<int>(std::distance(verdict_.ranks.begin(), first));
  return diagnose(Cause::early_exit, ErrorKind::temporary,
                  fmt::format("rank {} finished {:g} s ago and others still run", *verdict_.rank,
                              in_seconds(*options_.early_exit_wait)),
                  now);
}

// The run is lost, but first what every rank is doing.
Actions Supervisor::diagnose(Cause cause, ErrorKind kind, std::string why, TimePoint now) {
  verdict_.cause = cause;
  verdict_.why = std::move(why);
  verdict_.exit_code = static_cast<int>(kind);
  phase_ = Phase::diagnosing;
  roll_called_ = false;
  deadline_ = now + options_.roll_call_wait;
  return {WakeAt{deadline_}, CallRoll{}};
}

// Ends a rank's suspension, too: it is to end, and then to have its grace.
Actions Supervisor::stop(TimePoint now) {
  start_clocks(now);
  decide_restart(now);
  verdict_.asked_to_end = now;
  phase_ = Phase::stopping;
  deadline_ = now + options_.grace;
  Actions actions = for_each_running<Terminate>(stop_signal_);
  if (actions.empty()) return end_of_ranks(now);
  actions.push_back(WakeAt{deadline_});
  return actions;
}

void Supervisor::decide_restart(TimePoint now) {
  const bool failed = verdict_.cause == Cause::exited || verdict_.cause == Cause::killed ||
                      verdict_.cause == Cause::hung || verdict_.cause == Cause::early_exit;
  if (!failed || no_restart_) return;
  restart_in_ = restarts_.after(verdict_.exit_code, now - started_);
  if (restart_in_ || !restarts_.crash_loop()) return;
  verdict_.crash_loop = true;
  verdict_.exit_code = static_cast<int>(ErrorKind::gave_up);
}

Actions Supervisor::stop_groups(TimePoint now) {
  phase_ = Phase::stopping_groups;
  deadline_ = now + options_.group_grace;
  Actions actions = for_each_running<TerminateGroup>();
  actions.push_back(WakeAt{deadline_});
  return actions;
}

Actions Supervisor::kill(TimePoint now) {
  start_clocks(now);
  verdict_.killed = now;
  phase_ = Phase::killing;
  deadline_ = now + options_.kill_wait;
  Actions actions = for_each_running<Kill>();
  if (actions.empty()) return end_of_ranks(now);
  actions.push_back(WakeAt{deadline_});
  return actions;
}

Actions Supervisor::end_of_ranks(TimePoint now) {
  if (any_running()) return {};
  if (phase_ == Phase::diagnosing) return {};  // its end comes by RollCalled, and decides about a restart
  if (!restart_in_) {
    phase_ = Phase::ended;
    return {};
  }
  phase_ = Phase::pausing;
  if (suspended_) still_since_ = now;
  deadline_ = now + *restart_in_;
  return {EndAttempt{*restart_in_}, WakeAt{deadline_}};
}

bool Supervisor::any_running() const {
  return std::any_of(verdict_.ranks.begin(), verdict_.ranks.end(),
                     [](const RankVerdict& rank) { return rank.role == Role::running; });
}

template <typename Act, typename... More>
Actions Supervisor::for_each_running(More... more) const {
  Actions actions;
  for (std::size_t i = 0; i < verdict_.ranks.size(); ++i)
    if (verdict_.ranks[i].role == Role::running) actions.push_back(Act{static_cast<int>(i), more...});
  return actions;
}

std::vector<int> ranks_that(const Verdict& verdict, Role role) {
  std::vector<int> ranks;
  for (std::size_t i = 0; i < verdict.ranks.size(); ++i)
    if (verdict.ranks[i].role == role) ranks.push_back(static_cast<int>(i));
  return ranks;
}

}  // namespace fleetrun::launch
