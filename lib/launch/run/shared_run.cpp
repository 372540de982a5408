#include "launch/run/shared_run.h"

#include <csignal>
#include <utility>

#include <fmt/format.h>

#include "base/error/exit_codes.h"
#include "launch/process/exit_status.h"
#include "launch/process/signals.h"
#include "launch/supervise/exit_cause.h"

namespace fleetrun::launch {
namespace {

NodeFailure failure(const std::string& cause, const std::string& line, int exit_code,
                    const SharedTime& time) {
  return {.at = time.at,
          .error = time.error,
          .cause = cause,
          .line = line,
          .block = fmt::format("fleetrun: {}\n", line),
          .exit_code = exit_code};
}

WholeRun whole_run(const Over& over, JsonValue ranks) {
  WholeRun whole = {.cause = "finished", .message = "all ranks finished", .ranks = std::move(ranks)};
  if (!over.failure) return whole;
  whole.cause = over.failure->cause;
  whole.message = over.failure->line;
  whole.block = over.failure->block;
  whole.exit_code = over.failure->exit_code;
  whole.rank = over.failure->rank;
  return whole;
}

// The signal that asks to end the run; none for another event.
std::optional<int> asks_to_end(const Event& event) {
  if (std::holds_alternative<FrontLost>(event)) return SIGKILL;
  const auto* signal = std::get_if<SignalReceived>(&event);
  if (signal == nullptr || !ends_a_run(signal->signal)) return std::nullopt;
  return signal->signal;
}

}  // namespace

void SharedRun::begin_attempt(int attempt, HeldPorts& ports) {
  told_failure_ = false;
  Ready ready = {.attempt = attempt,
                 .ports = {},
                 .master_port = ports.endpoints.master.port,
                 .store = sources_.support.store()};
  for (const Endpoint& endpoint : ports.endpoints.ranks) ready.ports.push_back(endpoint.port);
  sources_.nodes.send(ready);
  const FromFirst answer = wait();
  if (const auto* over = std::get_if<Over>(&answer))
    throw Error(static_cast<ErrorKind>(over->failure->exit_code), over->failure->line);
  const auto& start = std::get<Start>(answer);
  ports.endpoints = {start.ranks, start.master};
  sources_.support.meet_at(start.store);
}

// A signal that would end the run goes to the first node, which ends it on all nodes.
FromFirst SharedRun::wait() {
  while (true) {
    if (auto answer = sources_.nodes.take_answer()) return *answer;
    const auto signal = asks_to_end(sources_.events.next());
    if (!signal) continue;
    const std::string line = fmt::format("stopped by {}", describe_signal(*signal));
    sources_.nodes.send(
        Failed{sources_.state.verdict.attempt,
               failure("stopped", line, kSignalExitCode + *signal, sources_.nodes.shared(Clock::now()))});
  }
}

NodeFailure SharedRun::failure_here() const {
  const Verdict& verdict = sources_.state.verdict;
  NodeFailure here =
      failure(std::string(facts_of(verdict.cause).name), describe_cause(verdict, sources_.command),
              verdict.exit_code, sources_.nodes.shared(time_of_failure()));
  if (verdict.rank) here.rank = verdict.number_of(*verdict.rank);
  return here;
}

// When its rank ended; of what has no rank, when it was noticed.
TimePoint SharedRun::time_of_failure() const {
  const auto& rank = sources_.state.verdict.rank;
  if (!rank) return failed_at_;
  const TimePoint ended = sources_.state.workers.at(static_cast<std::size_t>(*rank)).ended.steady;
  return ended == TimePoint() ? failed_at_ : ended;
}

void SharedRun::tell_failure() {
  const Cause cause = sources_.state.verdict.cause;
  if (told_failure_ || cause == Cause::finished || cause == Cause::elsewhere) return;
  told_failure_ = true;
  failed_at_ = Clock::now();
  sources_.nodes.send(Failed{sources_.state.verdict.attempt, failure_here()});
}

std::optional<Clock::duration> SharedRun::end_attempt(ExitReport& report) {
  Ended ended = {.attempt = sources_.state.verdict.attempt, .failure = {}, .ranks = ranks_json(report)};
  if (told_failure_) {
    ended.failure = failure_here();
    ended.failure->line = describe_failure(report);
    ended.failure->block = describe_end(report);
  }
  sources_.nodes.send(ended);
  const FromFirst answer = wait();
  if (const auto* again = std::get_if<Again>(&answer)) return std::chrono::nanoseconds(again->delay);
  report.whole = whole_run(std::get<Over>(answer), sources_.nodes.ranks());
  report.verdict.exit_code = report.whole->exit_code;
  return std::nullopt;
}

void SharedRun::fail_to_begin(const Error& error) {
  const std::string line =
      fmt::format("node {} cannot start: {}", sources_.nodes.placed().node_rank, error.message());
  sources_.nodes.send(Failed{sources_.state.verdict.attempt,
                             failure("error", line, error.exit_code(), sources_.nodes.shared(Clock::now()))});
  finish();
}

}  // namespace fleetrun::launch
