#include "launch/report/report.h"

#include <cerrno>
#include <utility>

#include <fmt/format.h>

#include "base/error/error.h"
#include "base/json/json_reader.h"
#include "base/json/redact_variables.h"
#include "base/run/version.h"
#include "base/text/name_ranks.h"
#include "base/text/printable.h"
#include "launch/cli/flags/shell_words.h"
#include "launch/report/utc_time.h"
#include "launch/supervise/exit_cause.h"

namespace fleetrun::launch {
namespace {

constexpr std::size_t kLongestCommand = 200;  // bytes, shown in a report

std::string_view describe(Role role) {
  switch (role) {
    case Role::running:
      return "running";
    case Role::finished:
      return "finished";
    case Role::cause:
      return "primary";
    case Role::stopped:
      return "stopped";
    case Role::failed_too:
      return "failed_too";
    case Role::failed_after:
      return "failed_after";
    case Role::never_started:
      return "never_started";
  }
  return "?";
}

std::string_view cause_word(const ExitReport& report) {
  if (report.whole) return report.whole->cause;
  if (report.error) return "error";
  return report.evidence.out_of_memory ? "oom" : facts_of(report.verdict.cause).name;
}

JsonValue rank_json(const ExitReport& report, std::size_t rank) {
  const RankVerdict& verdict = report.verdict.ranks.at(rank);
  JsonValue json = JsonValue::object(
      {{"rank", report.verdict.number_of(static_cast<int>(rank))}, {"role", describe(verdict.role)}});
  if (const auto& status = verdict.status) {
    const bool exited = status->how == ExitStatus::How::exited;
    json.add("how", exited ? "exited" : "killed");
    json.add(exited ? "code" : "signal", status->value);
    json.add("description", status->describe());
  }
  if (rank < report.workers.size() && report.workers[rank].pid > 0) {
    json.add("pid", report.workers[rank].pid);
    json.add("started", utc_time(report.workers[rank].started.wall));
    if (verdict.status) json.add("ended", utc_time(report.workers[rank].ended.wall));
  }
  if (verdict.killed) json.add("killed_by_fleetrun", true);
  if (rank < report.logs.size()) json.add("log", report.logs[rank]);
  return json;
}

JsonValue attempts_json(const std::vector<AttemptRecord>& attempts) {
  JsonValue json = JsonValue::list({});
  for (const AttemptRecord& attempt : attempts)
    json.items.push_back(JsonValue::object({{"message", attempt.message},
                                            {"exit_code", attempt.exit_code},
                                            {"ended", utc_time(attempt.ended)},
                                            {"logs", attempt.logs}}));
  return json;
}

JsonValue stand_stills_json(const std::vector<StandStillRecord>& records) {
  JsonValue json = JsonValue::list({});
  for (const StandStillRecord& record : records) {
    JsonValue one =
        JsonValue::object({{"attempt", record.attempt}, {"why", record.why}, {"nodes", record.nodes}});
    if (!record.first_node.empty()) one.add("taken_over_by", record.first_node);
    double sum = 0;
    for (const auto& [part, seconds] : record.seconds) {
      one.add(part + "_s", seconds);
      sum += seconds;
    }
    one.add("seconds", sum);
    json.items.push_back(std::move(one));
  }
  return json;
}

// A job's own program may have written it.
JsonValue train_json(const std::string& text) {
  const JsonDocument document = read_json(text);
  return document.problems.empty() ? document.root : "train.json is not valid JSON";
}

std::string fact_lines(const ExitReport& report) {
  std::string text;
  for (const std::string& fact : report.evidence.facts) text += fmt::format("fleetrun: {}\n", fact);
  return text;
}

std::string describe_exception(const DeathEvidence& evidence) {
  if (evidence.exception_place.empty()) return evidence.exception;
  return fmt::format("{} ({})", evidence.exception, evidence.exception_place);
}

// "(pid 7 on node1, after 2.5 s, at step 7)".
std::string describe_process(const ExitReport& report, std::size_t rank) {
  if (!report.verdict.ranks.at(rank).status || rank >= report.workers.size()) return "";
  const WorkerRecord& worker = report.workers[rank];
  return fmt::format(" (pid {}{}, after {:.1f} s{})", worker.pid,
                     report.host.empty() ? "" : " on " + report.host,
                     seconds_between(worker.started, worker.ended),
                     report.step ? fmt::format(", at step {}", *report.step) : "");
}

std::string with_host(const std::string& path, const ExitReport& report) {
  const bool alone = std::cmp_less_equal(report.verdict.span.world, report.verdict.ranks.size());
  return path + (alone ? "" : " on " + report.host);
}

std::string indented(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += fmt::format("    {}\n", line);
  return text;
}

std::string quote_log(const std::string& path, const std::vector<std::string>& lines) {
  return fmt::format("fleetrun: the last lines of {}:\n", path) + indented(lines);
}

std::string lost_lines_text(const ExitReport& report) {
  const auto& [rank, lines] = report.lost_lines;
  if (lines.empty()) return "";
  return fmt::format("fleetrun: the last lines of rank {} that could not be written to its log:\n",
                     report.verdict.number_of(rank)) +
         indented(lines);
}

JsonValue lost_lines_json(const ExitReport& report) {
  const auto& [rank, lines] = report.lost_lines;
  if (lines.empty()) return {};
  return JsonValue::object({{"rank", report.verdict.number_of(rank)}, {"last_lines", lines}});
}

std::string last_lines_text(const ExitReport& report, std::size_t rank) {
  const std::string log = with_host(report.logs.at(rank), report);
  if (report.log_problem != 0)
    return fmt::format("fleetrun: {} cannot be read: {}\n", log, describe_errno(report.log_problem));
  if (report.last_lines.empty()) return fmt::format("fleetrun: {} is empty\n", log);
  const bool lacks_lines = report.log_disk_full || !report.lost_lines.last_lines.empty();
  if (report.error_was_shown)
    return lacks_lines ? "fleetrun: the error is above\n"
                       : fmt::format("fleetrun: the error is above; {} has all that the rank wrote\n", log);
  const OtherLog& other = report.other_log;
  return quote_log(log, report.last_lines) +
         (other.last_lines.empty() ? "" : quote_log(with_host(other.path, report), other.last_lines));
}

std::string death_text(const ExitReport& report) {
  const auto rank = static_cast<std::size_t>(*report.verdict.rank);
  std::string text = describe_process(report, rank) + "\n";
  const std::vector<std::string>& command = report.ran.empty() ? report.command : report.ran;
  text += fmt::format("fleetrun: it ran: {}\n",
                      printable_start(quote_words(redact_variables(command)), kLongestCommand));
  if (!report.evidence.exception.empty())
    text += fmt::format("fleetrun: {}\n", describe_exception(report.evidence));
  text += fact_lines(report);
  const std::string earlier = earlier_error_text(report);
  return text + (earlier.empty() ? last_lines_text(report, rank) : earlier);
}

std::string message_of(const ExitReport& report) {
  if (report.whole) return report.whole->message;
  return report.error ? *report.error : describe_failure(report);
}

std::optional<int> first_failed_rank(const ExitReport& report) {
  if (report.whole) return report.whole->rank;
  const Verdict& verdict = report.verdict;
  return verdict.rank ? std::optional(verdict.number_of(*verdict.rank)) : std::nullopt;
}

std::string describe_origin(const std::string& origin) {
  return origin.empty() ? ", not by fleetrun" : ", which " + origin;
}

std::string describe_status(const Verdict& verdict) {
  if (!verdict.rank) return "";
  const auto& status = verdict.ranks.at(static_cast<std::size_t>(*verdict.rank)).status;
  return status ? status->describe() : "";
}

// Each node has shown what its own ranks did.
std::string roll_call_of_all_nodes(const ExitReport& report) {
  if (!report.whole || report.whole->roll_call.size() <= report.roll_call.size()) return "";
  const auto cause = cause_called(report.whole->cause);
  if (!cause || !is_of_all_ranks(*cause)) return "";  // the roll was called earlier
  return "fleetrun: what the ranks of all nodes were doing:\n" + indented(report.whole->roll_call);
}

std::string describe_spawn_error(int error) {
  std::string text = describe_errno(error);
  if (error == ENOEXEC)
    text += "; it is neither a program for this machine nor a script with a first line such as #!/bin/sh";
  return text;
}

}  // namespace

std::optional<int> stop_signal(const ExitReport& report) {
  if (report.whole) return report.whole->stop_signal;
  const Verdict& verdict = report.verdict;
  return verdict.cause == Cause::stopped ? std::optional(verdict.signal) : std::nullopt;
}

JsonValue ranks_json(const ExitReport& report) {
  JsonValue json = JsonValue::list({});
  for (std::size_t rank = 0; rank < report.verdict.ranks.size(); ++rank)
    json.items.push_back(rank_json(report, rank));
  return json;
}

JsonValue stragglers_json(const ExitReport& report) {
  JsonValue json = JsonValue::list({});
  for (const StragglerRecord& record : report.stragglers)
    json.items.push_back(
        JsonValue::object({{"rank", record.found.rank},
                           {"host", record.host},
                           {"phase", kTimeUseNames[static_cast<std::size_t>(record.found.phase)]},
                           {"factor", record.found.factor()},
                           {"own_ms_per_step", record.found.own_ms},
                           {"median_ms_per_step", record.found.median_ms},
                           {"attempt", record.attempt},
                           {"step", record.step},
                           {"message", record.describe()}}));
  return json;
}

std::string StragglerRecord::describe() const {
  return fmt::format(
      "rank {} on {} is slow in {}: each step takes it {:.1f} ms without communication, {:.2f} times the "
      "median of the ranks ({:.1f} ms)",
      found.rank, host, kTimeUseNames[static_cast<std::size_t>(found.phase)], found.own_ms, found.factor(),
      found.median_ms);
}

JsonValue earlier_error_json(const ExitReport& report) {
  if (!report.earlier_error) return {};
  const EarlierError& error = *report.earlier_error;
  return JsonValue::object({{"rank", report.verdict.number_of(error.rank)},
                            {"exception", error.exception},
                            {"log", report.logs.at(static_cast<std::size_t>(error.rank))},
                            {"last_lines", error.last_lines}});
}

JsonValue evidence_json(const ExitReport& report) {
  const DeathEvidence& evidence = report.evidence;
  return JsonValue::object(
      {{"last_lines", report.last_lines},
       {"exception", evidence.exception.empty() ? JsonValue() : describe_exception(evidence)},
       {"evidence", evidence.facts},
       {"earlier_error", earlier_error_json(report)}});
}

std::string describe_end(const ExitReport& report) {
  std::string sentence = "fleetrun: " + describe_cause(report.verdict, report.command);
  switch (facts_of(report.verdict.cause).report) {
    case ExitCause::Report::nothing:
      return sentence + "\n" + earlier_error_text(report) + lost_lines_text(report);
    case ExitCause::Report::start:
      return sentence + "\n" + fact_lines(report);
    case ExitCause::Report::death:
      return sentence + death_text(report) + lost_lines_text(report);
  }
  return sentence;
}

std::string describe_end_elsewhere(ExitReport report) {
  report.error_was_shown = false;
  return describe_end(report);
}

std::string describe_cause(const Verdict& verdict, const std::vector<std::string>& command) {
  return fmt::format(fmt::runtime(facts_of(verdict.cause).sentence),
                     fmt::arg("rank", verdict.rank ? verdict.number_of(*verdict.rank) : -1),
                     fmt::arg("status", describe_status(verdict)),
                     fmt::arg("origin", describe_origin(verdict.origin)),
                     fmt::arg("program", command.empty() ? "" : command.front()),
                     fmt::arg("problem", describe_spawn_error(verdict.spawn_error)),
                     fmt::arg("signal", describe_signal(verdict.signal)), fmt::arg("why", verdict.why));
}

std::string describe_failure(const ExitReport& report) {
  std::string text = describe_cause(report.verdict, report.command);
  if (report.evidence.out_of_memory) text += ", out of memory";
  if (!report.evidence.exception.empty()) text += ": " + describe_exception(report.evidence);
  if (report.earlier_error) text += "; " + describe_earlier_error(report);
  return text;
}

std::string describe_earlier_error(const ExitReport& report) {
  if (!report.earlier_error) return "";
  return fmt::format("rank {} had written an error before: {}",
                     report.verdict.number_of(report.earlier_error->rank), report.earlier_error->exception);
}

std::string earlier_error_text(const ExitReport& report) {
  if (!report.earlier_error) return "";
  const EarlierError& error = *report.earlier_error;
  return fmt::format("fleetrun: {}\n", describe_earlier_error(report)) +
         quote_log(with_host(report.logs.at(static_cast<std::size_t>(error.rank)), report), error.last_lines);
}

// "fleetrun: killed by fleetrun 10.5 s after it had asked them to end: ranks 0, 1"
std::string describe_killed(const Verdict& verdict) {
  const std::vector<int> killed = ranks_killed(verdict);
  if (killed.empty()) return "";
  const bool asked = verdict.asked_to_end && verdict.killed;
  return fmt::format("fleetrun: killed by fleetrun{}: {}\n",
                     asked ? fmt::format(" {:.1f} s after it had asked {} to end",
                                         in_seconds(*verdict.killed - *verdict.asked_to_end),
                                         killed.size() == 1 ? "it" : "them")
                           : "",
                     name_ranks(killed));
}

std::string describe(const ExitReport& report) {
  const Verdict& verdict = report.verdict;
  const bool all_well = report.whole ? report.whole->exit_code == 0 : verdict.cause == Cause::finished;
  if (all_well) return lost_lines_text(report);
  const bool is_told_by_other =
      report.whole && !(report.error_was_shown && report.whole->block == describe_end_elsewhere(report));
  std::string text = is_told_by_other ? report.whole->block : describe_end(report);
  if (const std::string lost = lost_lines_text(report); text.find(lost) == std::string::npos) text += lost;
  text += roll_call_of_all_nodes(report);
  if (const auto finished = ranks_that(verdict, Role::finished);
      !finished.empty() && facts_of(verdict.cause).report == ExitCause::Report::death)
    text += fmt::format("fleetrun: finished with 0 before: {}\n", name_ranks(finished));
  const auto tell_ends = [&](Role role, const char* when) {
    for (const int rank : ranks_that(verdict, role))
      text += fmt::format(
          "fleetrun: rank {} {} {}\n", rank,
          verdict.ranks[static_cast<std::size_t>(rank - verdict.span.first)].status->describe(), when);
  };
  tell_ends(Role::failed_too, "before fleetrun asked it to stop");
  tell_ends(Role::failed_after, "after fleetrun asked it to stop");
  if (const auto stopped = ranks_that(verdict, Role::stopped); !stopped.empty())
    text += fmt::format("fleetrun: stopped by fleetrun: {}\n", name_ranks(stopped));
  text += describe_killed(verdict);
  if (const auto left = ranks_that(verdict, Role::running); !left.empty())
    text += fmt::format("fleetrun: still there after SIGKILL: {}\n", name_ranks(left));
  if (facts_of(verdict.cause).report !=
      ExitCause::Report::nothing)  // the roll call has shown those of a hang
    for (const std::string& line : describe_collectives(report.collectives))
      text += fmt::format("fleetrun: {}\n", line);
  if (verdict.crash_loop)
    text +=
        fmt::format("fleetrun: gave up after {} attempts: restarting does not help\n", verdict.attempt + 1);
  if (verdict.restart_stopped_by != 0)
    text += fmt::format("fleetrun: no restart, because of {} while the ranks ended\n",
                        describe_signal(verdict.restart_stopped_by));
  for (const std::string& process : report.survivors)
    text += fmt::format("fleetrun: still there after SIGKILL: {}\n", process);
  return text + report.going_on;
}

JsonValue report_value(const ExitReport& report) {
  const Verdict& verdict = report.verdict;
  const bool of_all_nodes = report.whole && report.whole->ranks.is(JsonValue::Kind::list);
  const bool elsewhere = report.whole && report.whole->evidence.is(JsonValue::Kind::object);
  const JsonValue evidence = elsewhere ? report.whole->evidence : evidence_json(report);
  const auto part = [&](std::string_view name) {
    const JsonMember* const found = evidence.find(name);
    return found == nullptr ? JsonValue() : found->value;
  };
  JsonValue json = JsonValue::object({
      {"fleetrun", own_version()},
      {"run_id", report.run_id},
      {"job_id", report.job_id},
      {"cause", cause_word(report)},
      {"message", message_of(report)},
      {"exit_code", verdict.exit_code},
      {"first_failed_rank", first_failed_rank(report)},
      {"stop_signal", stop_signal(report)},
      {"started", utc_time(report.started.wall)},
      {"ended", utc_time(report.ended.wall)},
      {"seconds", seconds_between(report.started, report.ended)},
      {"host", report.host},
      {"command", redact_variables(report.command)},
      {"ranks", of_all_nodes ? report.whole->ranks : ranks_json(report)},
      {"last_lines", part("last_lines")},
      {"exception", part("exception")},
      {"evidence", part("evidence")},
      {"earlier_error", part("earlier_error")},
      {"roll_call", of_all_nodes ? report.whole->roll_call : report.roll_call},
      {"collectives", comparisons_json(report.collectives)},
      {"step", report.step},
      {"log_disk_full", report.log_disk_full},
      {"lost_lines", lost_lines_json(report)},
      {"crash_loop", verdict.crash_loop},
      {"restart_stopped_by",
       verdict.restart_stopped_by == 0 ? JsonValue() : JsonValue(verdict.restart_stopped_by)},
      {"earlier_attempts", attempts_json(report.attempts)},
      {"stand_stills", stand_stills_json(report.stand_stills)},
      {"stragglers", stragglers_json(report)},
      {"survivors", report.survivors},
  });
  if (!report.train.empty()) json.add("train", train_json(report.train));
  return json;
}

std::string report_json(const ExitReport& report) { return to_json_tall(report_value(report)); }

}  // namespace fleetrun::launch
