#include "launch/run/shared_run.h"

#include <csignal>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/error/exit_codes.h"
#include "launch/process/signals.h"
#include "launch/supervise/exit_cause.h"

namespace fleetrun::launch {

WholeRun whole_run(const Over& over, const NodeSession& nodes) {
  WholeRun whole = {.cause = "finished",
                    .message = "all ranks finished",
                    .ranks = nodes.ranks(),
                    .roll_call = nodes.roll_call()};
  if (!over.failure) return whole;
  whole.cause = over.failure->cause;
  whole.message = over.failure->line;
  whole.block = over.failure->block;
  whole.exit_code = over.failure->exit_code;
  if (over.failure->signal != 0) whole.stop_signal = over.failure->signal;
  whole.rank = over.failure->rank;
  whole.evidence = over.failure->evidence;
  return whole;
}

namespace {

constexpr const char* kThenLost = "; then lost ";  // AttemptEnd

// "no restart is left" of "fleetrun: lost node 2\nfleetrun: no restart is left\n"; "": there is none.
std::string second_line(const std::string& block) {
  constexpr std::string_view kStart = "\nfleetrun: ";
  const std::size_t start = block.find(kStart);
  if (start == std::string::npos) return "";
  const std::size_t first = start + kStart.size();
  return block.substr(first, block.find('\n', first) - first);
}

}  // namespace

std::optional<Again> SharedRun::wait_for_nodes(int attempt, HeldPorts& ports, ExitReport& report) {
  attempt_ = attempt;
  told_failure_ = told_finish_ = has_ended_ = ending_ = asked_to_end_ = false;
  end_elsewhere_.reset();
  Ready ready = {.attempt = attempt,
                 .ports = {},
                 .master_port = ports.endpoints.master.port,
                 .store = {sources_.support.store(), sources_.support.store_also_at()},
                 .reaches = sources_.support.needs_store() ? sources_.nodes.reached_of_first()
                                                           : std::vector<std::string>()};
  for (const Endpoint& endpoint : ports.endpoints.ranks) ready.ports.push_back(endpoint.port);
  if (suspended_) pass_on(SignalReceived{SIGTSTP});  // before the first node can start the attempt
  sources_.nodes.send(ready);
  const FromFirst answer = wait();
  if (const auto* over = std::get_if<Over>(&answer)) {
    report.whole = whole_run(*over, sources_.nodes);
    throw Error(static_cast<ErrorKind>(report.whole->exit_code), report.whole->message,
                second_line(report.whole->block));
  }
  if (const auto* again = std::get_if<Again>(&answer)) return *again;
  const auto& start = std::get<Start>(answer);
  ports.endpoints = {start.ranks, start.master};
  sources_.support.meet_at(start.store);
  return std::nullopt;
}

FromFirst SharedRun::wait() {
  while (true) {
    if (auto answer = sources_.nodes.take_answer()) return *answer;
    pass_on(sources_.events.next());
  }
}

// What would end the run goes to the first node, which ends it on all nodes.
void SharedRun::pass_on(const Event& event) {
  if (const auto* end = std::get_if<EndedElsewhere>(&event)) {
    ending_ = true;
    end_elsewhere_ = *end;
  }
  note_suspension(event);
  tell_signal(event);
  const auto timeout = sources_.supervisor.timeout();
  const auto verdict = sources_.supervisor.end_between_attempts(event, sources_.events.noticed_at());
  if (sources_.supervisor.timeout() != timeout)
    sources_.events.push_at(*sources_.supervisor.timeout(), Woke{});
  if (!verdict) return;
  const NodeFailure failure = failure_here(*verdict, sources_.nodes.shared(Clock::now()));
  if (std::holds_alternative<FrontLost>(event) && sources_.nodes.hand_over(failure)) return;
  if (note_request(event)) {
    hurry(event);
    sources_.nodes.stop_looking();
  } else {
    say_what_ctrl_c_does(*verdict, event);
  }
  ending_ = true;
  sources_.nodes.send(Failed{attempt_, failure});
}

// Whether this node was asked to end before.
bool SharedRun::note_request(const Event& event) {
  const auto* signal = std::get_if<SignalReceived>(&event);
  const bool asks = signal != nullptr && ends_a_run(signal->signal);
  return std::exchange(asked_to_end_, asked_to_end_ || asks);
}

// A second Ctrl-C kills the ranks of all nodes.
void SharedRun::hurry(const Event& event) {
  const auto* signal = std::get_if<SignalReceived>(&event);
  if (signal != nullptr && signal->signal == SIGINT) sources_.nodes.send(Hurry{attempt_});
}

// While no rank is left here, and some may be left elsewhere.
void SharedRun::say_what_ctrl_c_does(const Verdict& verdict, const Event& event) {
  if (!has_ended_ || !std::holds_alternative<SignalReceived>(event) || sources_.nodes.waits_for_nodes())
    return;
  if (!sources_.nodes.is_connected())
    return sources_.say(fmt::format("{}: the other nodes hear of it if they meet this node",
                                    describe_cause(verdict, sources_.command)));
  const Verdict& before = sources_.state.verdict;
  sources_.say(
      fmt::format("{}, waiting for the ranks of the other nodes to end; Ctrl-C kills them now",
                  describe_cause(before.cause == Cause::finished ? verdict : before, sources_.command)));
}

// A failure without a rank names this node. Two ends of this node count as its loss: its front process is gone, or its starter
// is (then it gets SIGHUP; launch/starters/agent.h).
NodeFailure SharedRun::failure_here(const Verdict& verdict, const SharedTime& time) const {
  NodeFailure failure = {.at = time.at,
                         .error = time.error,
                         .cause = std::string(facts_of(verdict.cause).name),
                         .line = describe_cause(verdict, sources_.command),
                         .block = {},
                         .exit_code = verdict.exit_code,
                         .signal = verdict.signal};
  if (verdict.cause == Cause::front_lost) failure.exit_code = static_cast<int>(ErrorKind::temporary);
  if (verdict.rank)
    failure.rank = verdict.number_of(*verdict.rank);
  else if (!is_of_all_ranks(verdict.cause))
    failure.line += " on " + sources_.nodes.own_name();
  if (sources_.is_agent && verdict.cause == Cause::stopped && verdict.signal == SIGHUP) {
    failure.cause = facts_of(Cause::node_lost).name;
    failure.line =
        fmt::format("lost {}: the connection over which it was started has ended", sources_.nodes.own_name());
    failure.exit_code = static_cast<int>(ErrorKind::temporary);
    failure.signal = 0;
  }
  failure.block = fmt::format("fleetrun: {}\n", failure.line);
  return failure;
}

// When its rank ended; of what has no rank, when it was noticed.
SharedTime SharedRun::time_of_failure() const {
  const auto& rank = sources_.state.verdict.rank;
  const WorkerRecord none;
  const WorkerRecord& record = rank ? sources_.state.workers.at(static_cast<std::size_t>(*rank)) : none;
  const bool ended = record.ended.steady != TimePoint();
  SharedTime time = sources_.nodes.shared(ended ? record.ended.steady : failed_at_);
  if (ended) time.error += record.ended_earlier / std::chrono::nanoseconds(1);
  return time;
}

// The ranks here may be ending already. On the first node, the others may go on without it.
void SharedRun::tell_departure() {
  Verdict departure = sources_.state.verdict;
  const bool for_this_reason = std::exchange(departure.cause, Cause::front_lost) == Cause::front_lost;
  departure.rank.reset();
  const NodeFailure failure = failure_here(departure, sources_.nodes.shared(Clock::now()));
  if (!sources_.nodes.hand_over(failure) && !for_this_reason) sources_.nodes.send(Failed{attempt_, failure});
}

void SharedRun::tell(const Event& event) {
  const Verdict& verdict = sources_.state.verdict;
  note_suspension(event);
  note_request(event);
  if (std::holds_alternative<FrontLost>(event)) tell_departure();
  const auto* signal = std::get_if<SignalReceived>(&event);
  const bool continues =
      signal != nullptr && signal->signal == SIGCONT;  // ranks may have failed while all were stopped
  if (verdict.cause == Cause::finished || continues) tell_signal(event);
  if (verdict.cause == Cause::finished) return tell_finish(event);
  if (std::exchange(ending_, true) && verdict.killed) hurry(event);
  if (told_failure_ || verdict.cause == Cause::elsewhere) return;
  told_failure_ = true;
  failed_at_ = Clock::now();
  sources_.nodes.send(Failed{attempt_, failure_here(verdict, time_of_failure())});
}

void SharedRun::note_suspension(const Event& event) {
  const auto* here = std::get_if<SignalReceived>(&event);
  const auto* elsewhere = std::get_if<SignalElsewhere>(&event);
  if (here != nullptr && here->signal == SIGTSTP) suspended_ = true;
  const int signal = here != nullptr ? here->signal : elsewhere != nullptr ? elsewhere->signal : 0;
  if (signal == SIGCONT) suspended_ = false;
}

// All nodes stop and continue together, and pass on the same signals.
void SharedRun::tell_signal(const Event& event) {
  const auto* signal = std::get_if<SignalReceived>(&event);
  if (signal != nullptr && is_obeyed_by_a_run(signal->signal))
    sources_.nodes.send(Signalled{attempt_, signal->signal});
}

void SharedRun::tell_finish(const Event& event) {
  const auto* exited = std::get_if<WorkerExited>(&event);
  if (exited == nullptr || std::exchange(told_finish_, true)) return;
  const Verdict& verdict = sources_.state.verdict;
  sources_.nodes.send(Finished{attempt_, verdict.number_of(exited->rank)});
}

// All nodes name the failure that the first node found to be the first of all. `here` is that of this node. Another first node may know only
// its beginning, and the loss after it.
void SharedRun::correct_cause(const NodeFailure& first, const std::optional<NodeFailure>& here,
                              ExitReport& report) {
  Verdict& verdict = report.verdict;
  const auto is_before_loss = [&](const std::string& line) {
    return first.line.starts_with(line + kThenLost);
  };
  if (here && (here->line == first.line || is_before_loss(here->line) ||
               is_before_loss(describe_cause(verdict, report.command))))
    return;
  verdict.cause = Cause::elsewhere;
  verdict.exit_code = first.exit_code;
  verdict.why = first.line;
  verdict.rank.reset();
  report.evidence = {};
  report.earlier_error.reset();
  report.last_lines.clear();
  report.other_log = {};
}

// The first node was lost when the session knew only the first line of the failure of a rank here.
void SharedRun::tell_all_of(const NodeFailure& failure, const NodeFailure& brief, WholeRun& whole) {
  const bool is_before_loss = whole.message.starts_with(brief.line + kThenLost);
  if (whole.rank != brief.rank || !is_before_loss || !whole.block.starts_with(brief.block)) return;
  whole.block.replace(0, brief.block.size(), failure.block);
  whole.message.replace(0, brief.line.size(), failure.line);
  whole.evidence = failure.evidence;
}

std::optional<Again> SharedRun::end_attempt(ExitReport& report) {
  const Verdict& verdict = sources_.state.verdict;
  Ended ended = {.attempt = attempt_,
                 .failure = {},
                 .ranks = ranks_json(report),
                 .roll_call = report.roll_call,
                 .no_restart = sources_.supervisor.must_not_restart(Clock::now()),
                 .asked_by = sources_.supervisor.asked_by(),
                 .finished = verdict.cause == Cause::finished,
                 .step = highest_step(sources_.state.pages)};
  std::optional<NodeFailure> brief;
  if (told_failure_) ended.failure = brief = failure_here(verdict, time_of_failure());
  if (told_failure_ && verdict.rank) {
    ended.failure->line = describe_failure(report);
    ended.failure->block = describe_end_elsewhere(report);
    ended.failure->evidence = evidence_json(report);
  }
  if (!verdict.rank) {  // the first node knows whether it explains the failure
    ended.earlier = {describe_earlier_error(report), earlier_error_text(report), earlier_error_json(report)};
    if (report.earlier_error) {
      ended.earlier.at = sources_.nodes.shared(report.earlier_error->written).at;
      ended.earlier.may_be_caught = report.earlier_error->may_be_caught;
    }
    report.earlier_error.reset();
  }
  sources_.nodes.send(ended);
  has_ended_ = true;
  const FromFirst answer = wait();
  if (const auto* again = std::get_if<Again>(&answer)) {
    if (end_elsewhere_ &&
        report.verdict.cause == Cause::finished) {  // the attempt failed after the ranks here had finished
      report.verdict.cause = Cause::elsewhere;
      report.verdict.exit_code = end_elsewhere_->exit_code;
      report.verdict.why = end_elsewhere_->why;
    }
    if (again->failure) correct_cause(*again->failure, ended.failure, report);
    return *again;
  }
  const auto& over = std::get<Over>(answer);
  report.whole = whole_run(over, sources_.nodes);
  if (brief) tell_all_of(*ended.failure, *brief, *report.whole);
  report.verdict.exit_code = report.whole->exit_code;
  report.verdict.crash_loop = over.gave_up;
  return std::nullopt;
}

NodeFailure cannot_go_on(const NodeSession& nodes, const Error& error) {
  const SharedTime shared = nodes.shared(Clock::now());
  const std::string line = fmt::format("{} cannot go on: {}", nodes.own_name(), error.message());
  return {.at = shared.at,
          .error = shared.error,
          .cause = "error",
          .line = line,
          .block = fmt::format("fleetrun: {}\n", line),
          .exit_code = error.exit_code()};
}

// If the run ends with this, all nodes end with the same code, as end_report() chooses it for this one. The others of an elastic run may go
// on, which depends on the code of the error itself.
void SharedRun::leave(const Error& error, const ExitReport& report) {
  NodeFailure failure = cannot_go_on(sources_.nodes, error);
  const int before = report.attempts.empty() ? 0 : report.attempts.back().exit_code;
  if (before != 0 && !sources_.nodes.is_elastic()) failure.exit_code = before;
  sources_.nodes.leave(failure);
}

}  // namespace fleetrun::launch
