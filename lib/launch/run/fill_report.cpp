#include "launch/run/fill_report.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "base/error/error.h"
#include "launch/console/console_plan.h"
#include "launch/evidence/echoes.h"
#include "launch/evidence/last_exception.h"
#include "launch/evidence/log_cause.h"
#include "launch/evidence/lost_peer.h"
#include "launch/host/limits.h"
#include "launch/logs/last_lines.h"
#include "launch/logs/log_disk.h"
#include "launch/logs/log_names.h"
#include "launch/report/describe_roll_call.h"
#include "launch/run/earlier_error.h"
#include "launch/supervise/exit_cause.h"

namespace fleetrun::launch {
namespace {

using WallClock = std::chrono::system_clock;

constexpr std::size_t kLastLines = 30;   // of a failed rank's log, as one screen takes
constexpr std::size_t kOtherLines = 10;  // if it has another log
constexpr std::size_t kLostLines = 10;
constexpr std::size_t kLogEnd = 256 * 1024;          // bytes in which the cause is looked for
constexpr std::int64_t kLongBefore = 5'000'000'000;  // ns

std::string make_run_id(const LaunchOptions& options) {
  const auto now = std::chrono::duration_cast<std::chrono::milliseconds>(WallClock::now().time_since_epoch());
  return fmt::format("{}-{:x}-{:x}", options.job_id.value, now.count(), ::getpid());
}

std::string host_name() {
  char name[256] = "";  // longer than HOST_NAME_MAX
  ::gethostname(name, sizeof name - 1);
  return name;
}

// What a rank ran, when that is not the command of all.
std::vector<std::string> own_command(const Attempt& attempt, std::size_t rank, const ExitReport& report) {
  if (rank >= attempt.workers.size() || attempt.workers[rank].argv == report.command) return {};
  return attempt.workers[rank].argv;
}

// The slowest rank counts in each part.
AttemptStart start_of_attempt(const RunState& state) {
  using Reached = std::atomic<std::int64_t> ProgressPage::*;
  std::vector<std::int64_t> before;
  for (std::size_t rank = 0; rank < state.pages.size(); ++rank)
    before.push_back(state.workers.at(rank).started.steady.time_since_epoch() / std::chrono::nanoseconds(1));
  AttemptStart parts;
  for (const auto& [name, reached] : {std::pair<const char*, Reached>("start", &ProgressPage::load_began_ns),
                                      {"load", &ProgressPage::load_ended_ns},
                                      {"first_step", &ProgressPage::first_step_ns}}) {
    std::int64_t longest = 0;
    for (std::size_t rank = 0; rank < before.size(); ++rank) {
      const std::int64_t time = (*state.pages[rank].*reached).load();
      if (time == 0) return parts;
      longest = std::max(longest, time - std::exchange(before[rank], time));
    }
    parts.emplace_back(name, static_cast<double>(longest) / 1e9);
  }
  return parts;
}

// Of the rank that failed first. If there is none, or it has lost nothing: of the first rank that has lost some.
void fill_lost_lines(const RunState& state, ExitReport& report) {
  report.lost_lines = {};
  for (int rank = 0; rank < std::ssize(state.pages); ++rank) {
    const bool failed = rank == state.verdict.rank;
    if (!failed && !report.lost_lines.last_lines.empty()) continue;
    const std::string text = state.pages[static_cast<std::size_t>(rank)]->lost_text().read();
    if (!text.empty()) report.lost_lines = {rank, last_lines(text, kLostLines)};
  }
}

void fill_earlier_error(const LastWords& words, std::string log_of_failed, ExitReport& report) {
  report.earlier_error = find_earlier_error(words, {.script = script_of(report.command),
                                                    .log_of_failed = std::move(log_of_failed),
                                                    .ranks_waited = is_of_all_ranks(report.verdict.cause)});
  if (!report.earlier_error) return;
  report.logs.at(static_cast<std::size_t>(report.earlier_error->rank)) = report.earlier_error->log;
}

// The texts at the ends of the logs of the rank that failed.
struct LogEnds {
  std::string first;
  std::string other = {};  // "": there is none
};

// Of a rank that had not failed. Errors that the failed rank had handled before it lost this one do not matter then.
void fill_error_of_peer(const LastWords& words, const ExitStatus& status, std::string_view script,
                        const LogEnds& ends, ExitReport& report) {
  if (!may_end_by_lost_peer(status) && !is_victim(ends.first, script))
    return;  // it may crash while it leaves
  if (names_own_error(ends.first, script, report.evidence.exception)) return;
  const std::optional<LogCause> lost_peer = find_lost_peer(ends.first, script);
  if (!lost_peer && !ends_with_lost_peer(ends.first, status) && !ends_with_lost_peer(ends.other, status) &&
      !may_tell_of_lost_peer(report.evidence.exception))
    return;
  fill_earlier_error(words, ends.first + ends.other, report);
  if (!report.earlier_error || !lost_peer) return;
  report.evidence.exception = lost_peer->what;
  report.evidence.exception_place = lost_peer->place;
}

// That the log did not have yet when the death of the rank was noticed.
std::size_t late_bytes(const EndOfLog& words) {
  return words.at_death == 0 ? 0 : static_cast<std::size_t>(std::max<off_t>(words.size - words.at_death, 0));
}

// The log that tells the cause comes first. stdout is that log if stderr tells none, or tells of an exception which the rank may have caught
// long before it wrote to stdout.
EndOfLogs in_order(EndOfLogs ends, const std::optional<ExitStatus>& status, std::string_view script) {
  if (!ends.output || !status) return ends;
  const auto names_cause = [&](const EndOfLog& end, const std::string& text) {
    return !find_log_cause(text, *status, script, late_bytes(end)).what.empty();
  };
  const std::string errors = read_log_end(ends.first.log, kLogEnd, ends.first.size);
  const bool survived =
      ends.output->written - ends.first.written > kLongBefore && may_be_caught(errors, script);
  if (!survived && names_cause(ends.first, errors)) return ends;
  const std::string output = read_log_end(ends.output->log, kLogEnd, ends.output->size);
  if (survived || names_cause(*ends.output, output)) std::swap(ends.first, *ends.output);
  return ends;
}

}  // namespace

ExitReport begin_report(const RunPlan& plan) {
  ExitReport report;
  report.started = Moment::now();
  report.run_id = make_run_id(plan.options);
  report.job_id = plan.options.job_id.value;
  report.command = plan.program.argv;
  report.host = host_name();
  return report;
}

bool has_shown_error(const ExitReport& report, const ConsolePlan& console) {
  if (!report.verdict.rank) return false;
  const int rank = *report.verdict.rank;
  const auto& status = report.verdict.ranks.at(static_cast<std::size_t>(rank)).status;
  const bool is_shown = std::any_of(console.logs.begin(), console.logs.end(), [&](const ShownLog& log) {
    return log.local_rank == rank && log.stream != LogStream::out;
  });
  const std::string start = fmt::format("rank {}: error: ", report.verdict.number_of(rank));
  return is_shown && status && status->how == ExitStatus::How::exited &&
         std::any_of(report.last_lines.begin(), report.last_lines.end(),
                     [&](const std::string& line) { return line.starts_with(start); });
}

void fill_survivors(const RunState& state, ExitReport& report) {
  report.survivors.clear();
  for (const pid_t pid : state.survivors) report.survivors.push_back(describe_stuck(pid));
}

void fill_error_before_end(const LastWords& words, ExitReport& report) {
  fill_earlier_error(words, "", report);
}

void fill_attempt(const RunState& state, const Attempt& attempt, const LogFolder& logs,
                  const LastWords& last_words, ExitReport& report) {
  report.verdict = state.verdict;
  report.workers = state.workers;
  if (!state.pages.empty()) report.starts[state.verdict.attempt] = start_of_attempt(state);
  fill_survivors(state, report);
  fill_lost_lines(state, report);
  report.last_lines.clear();
  report.other_log = {};
  report.evidence = {};
  report.earlier_error.reset();
  report.step.reset();
  report.ran.clear();
  report.logs.clear();
  for (int rank = 0; rank < std::ssize(state.workers); ++rank) report.logs.push_back(logs.worker_log(rank));
  if (ends_without_failure(report.verdict.cause)) fill_earlier_error(last_words, "", report);
  if (!report.verdict.rank) return;
  const int rank = *report.verdict.rank;
  report.ran = own_command(attempt, static_cast<std::size_t>(rank), report);
  const auto& status = report.verdict.ranks.at(static_cast<std::size_t>(rank)).status;
  const std::string script = script_of(report.ran.empty() ? report.command : report.ran);
  const auto [words, others] =
      in_order(last_words.found() ? *last_words.found() : end_of_logs(attempt, logs, rank), status, script);
  const LogFile& log = words.log;
  report.logs.at(static_cast<std::size_t>(rank)) = log.path;
  if (!state.pages.empty()) report.step = state.pages.at(static_cast<std::size_t>(rank))->step.load();
  LogEnds ends = {.first = read_log_end(log, kLogEnd, words.size)};
  report.last_lines = last_lines_of_failure(ends.first, kLastLines);
  report.log_problem = ends.first.empty() ? problem_of_reading(log) : 0;
  if (others) {
    ends.other = read_log_end(others->log, kLogEnd, others->size);
    report.other_log = {others->log.path, last_lines_of_failure(ends.other, kOtherLines)};
  }
  if (!status || status->ok()) return;
  report.evidence =
      gather_evidence({.rank = rank,
                       .pid = report.workers.at(static_cast<std::size_t>(rank)).pid,
                       .status = *status,
                       .origin = report.verdict.origin,
                       .script = script,
                       .log = log.path,
                       .log_trouble = why_logs_lose_lines(logs),
                       .error_file = logs.read_error_file(rank),
                       .log_end = ends.first,
                       .late = late_bytes(words),
                       .memory_before = report.memory_before,
                       .started = report.workers.at(static_cast<std::size_t>(rank)).started.wall});
  fill_error_of_peer(last_words, *status, script, ends, report);
}

// A run does not fail because there is no room for what is said about it.
void fill_collectives(const CollectiveRecords& records, const LogFolder& logs, ExitReport& report) {
  report.collectives = {};
  if (report.verdict.cause == Cause::finished || records.empty()) return;
  report.collectives = records;
  try {
    for (const RankCollectives& rank : records.ranks)
      logs.write(fmt::format("collectives.{}.json", rank.rank), to_json_tall(history_json(records, rank)));
  } catch (const Error& error) {
    report.evidence.facts.push_back(error.message());
  }
}

void fill_limit(const Environment& environment, ExitReport& report) {
  const Verdict& verdict = report.verdict;
  std::string limit;
  if (verdict.cause == Cause::spawn) {
    limit = describe_spawn_limit(verdict.spawn_error, report.command, environment);
  } else if (verdict.rank && verdict.ranks.at(static_cast<std::size_t>(*verdict.rank)).status) {
    const auto rank = static_cast<std::size_t>(*verdict.rank);
    limit = describe_death_limit(*verdict.ranks[rank].status, report.workers.at(rank).cpu_seconds,
                                 read_deadly_limits());
  }
  if (!limit.empty()) report.evidence.facts.push_back(limit);
}

void record_attempt(const LogFolder& logs, ExitReport& report) {
  report.attempts.push_back({.number = report.verdict.attempt,
                             .message = describe_failure(report),
                             .exit_code = report.verdict.exit_code,
                             .logs = logs.file(fmt::format("attempt-{}", report.verdict.attempt)),
                             .ended = WallClock::now()});
}

void archive_attempt(const LogFolder& logs, ExitReport& report) {
  logs.keep_attempt(report.verdict.attempt);
  for (std::string& log : report.logs)
    log = fmt::format("{}/{}", report.attempts.back().logs, std::filesystem::path(log).filename().string());
}

bool is_archived(int attempt, const ExitReport& report) {
  return !report.attempts.empty() && report.attempts.back().number >= attempt;
}

void fill_end_before_restart(const Verdict& verdict, ExitReport& report) {
  report.verdict = verdict;
  report.evidence = {};
  report.last_lines.clear();
  report.lost_lines = {};
  report.other_log = {};
  report.step.reset();
}

void fill_stand_stills(const std::vector<StandStill>& stand_stills, ExitReport& report) {
  for (const StandStill& one : stand_stills) {
    report.stand_stills.push_back({.attempt = one.attempt,
                                   .why = one.why,
                                   .nodes = one.nodes,
                                   .first_node = one.first_node,
                                   .seconds = {{"detection", in_seconds(one.detection)},
                                               {"stop", in_seconds(one.stop)},
                                               {"pause", in_seconds(one.pause)},
                                               {"join", in_seconds(one.join)}}});
    const auto start = report.starts.find(one.attempt);
    if (start == report.starts.end()) continue;
    auto& seconds = report.stand_stills.back().seconds;
    seconds.insert(seconds.end(), start->second.begin(), start->second.end());
  }
}

Saved saved_by(const std::vector<ProgressPagePtr>& pages, bool with_rank_0) {
  const auto has_own = [](const ProgressPagePtr& page) { return page->has_own_checkpoint.load(); };
  const auto works_on_nothing = [](const ProgressPagePtr& page) {
    return page->first_step_ns != 0 && page->saved_steps < 0;
  };
  const auto has_weights = [](const ProgressPagePtr& page) { return page->has_saved_weights.load(); };
  const auto is_done = [](const ProgressPagePtr& page) { return page->is_done.load(); };
  if (std::ranges::any_of(pages, has_weights)) return Saved::weights;
  if (!with_rank_0 && std::ranges::any_of(pages, is_done)) return Saved::elsewhere;
  const auto last_asked = with_rank_0 && !pages.empty() ? pages.begin() + 1 : pages.end();
  if (std::any_of(pages.begin(), last_asked, has_own)) return Saved::own_checkpoint;
  return !pages.empty() && std::ranges::all_of(pages, works_on_nothing) ? Saved::nothing : Saved::unknown;
}

void fill_going_on(const LogFolder& logs, const StopPlan& stop, ExitReport& report) {
  report.train = logs.read_train_report();
  const bool timed_out = report.whole ? cause_called(report.whole->cause) == Cause::timed_out
                                      : report.verdict.cause == Cause::timed_out;
  const bool has_saved = report.saved == Saved::own_checkpoint || report.saved == Saved::weights;
  const bool was_stopped = stop_signal(report) || (timed_out && has_saved);
  report.going_on = describe_going_on(stop, was_stopped, report.train, report.saved);
}

void end_report(const Error& error, ExitReport& report) {
  report.error = error.message();
  report.verdict.exit_code = report.attempts.empty() ? error.exit_code() : report.attempts.back().exit_code;
  report.ended = Moment::now();
}

void write_report(const LogFolder& logs, const ExitReport& report) {
  logs.write(kReportName, report_json(report));
}

}  // namespace fleetrun::launch
