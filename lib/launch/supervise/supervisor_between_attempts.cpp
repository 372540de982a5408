// The Supervisor between two attempts, while no rank runs: what ends the run there.
#include <csignal>

#include <fmt/format.h>

#include "base/error/exit_codes.h"
#include "launch/supervise/supervisor.h"

namespace fleetrun::launch {

std::optional<Verdict> Supervisor::end_between_attempts(const Event& event, TimePoint now) {
  const auto* here = std::get_if<SignalReceived>(&event);
  const auto* elsewhere = std::get_if<SignalElsewhere>(&event);
  const int signal = here != nullptr ? here->signal : elsewhere != nullptr ? elsewhere->signal : 0;
  if (signal == SIGTSTP && !clocks_.stand_still()) clocks_.standing_since = now;
  if (signal == SIGCONT) start_clocks(now);
  if (const auto* stood = std::get_if<StoodStill>(&event)) handle(*stood, now);
  Verdict end = {.attempt = verdict_.attempt, .span = verdict_.span};
  if (here != nullptr && ends_the_run(signal)) {
    end.signal = signal;
    launch::set_cause(end, Cause::stopped, kSignalExitCode + signal);
  } else if (std::holds_alternative<FrontLost>(event)) {
    launch::set_cause(end, Cause::front_lost);
  } else if (has_timed_out(now)) {
    end.why = describe_timeout();
    launch::set_cause(end, Cause::timed_out);
  } else {
    return std::nullopt;
  }
  return end;
}

bool Supervisor::must_not_restart(TimePoint now) const { return restarts_.forbidden() || has_timed_out(now); }

bool Supervisor::has_timed_out(TimePoint now) const {
  return !clocks_.stand_still() && clocks_.timeout && now >= *clocks_.timeout;
}

std::string Supervisor::describe_timeout() const {
  return fmt::format("--timeout: {:g} s have passed", in_seconds(*options_.timeout));
}

// No rank is left to be stopped. The failure before the pause was that of an attempt; this is the end of the run.
Actions Supervisor::end_pause(Cause cause, int code_of_event) {
  restart_in_.reset();
  set_cause(cause, code_of_event);
  verdict_.rank.reset();
  phase_ = Phase::ended;
  return {};
}

}  // namespace fleetrun::launch
