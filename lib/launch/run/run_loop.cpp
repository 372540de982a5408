#include "launch/run/run_loop.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "launch/host/limits.h"
#include "launch/process/signals.h"
#include "launch/run/announcements.h"
#include "launch/run/fill_report.h"

namespace fleetrun::launch {
namespace {

constexpr auto kReaderPatience = std::chrono::seconds(2);  // for a reader of our output that takes nothing
constexpr int kLooks = 10;                                 // at the ranks within the time of a hang
constexpr Clock::duration kLookEvery = std::chrono::seconds(1), kLookOften = std::chrono::milliseconds(50);
constexpr const char* kUsualPrefix = "[{rank}] ";  // when lines of several ranks are shown

HangMonitor::Options hang_options(const NodeRun& run, const LogFolder& logs) {
  const auto& timeout = run.options.hang_timeout;
  HangMonitor::Options options;
  HangOptions& watch = options.watch;
  watch.silence = timeout.value;
  watch.steps = run.job && (timeout.value || timeout.origin == Origin::fallback);
  watch.step_bound = timeout.value;
  if (const auto& rule = run.options.log_rule.value) {
    options.rules.push_back(*rule);
    watch.rules.push_back({rule->text, rule->within});
  }
  for (const Clock::duration bound : {timeout.value.value_or(kLookEvery * kLooks),
                                      watch.rules.empty() ? kLookEvery * kLooks : watch.rules.front().time})
    watch.look_every = std::clamp<Clock::duration>(bound / kLooks, kLookOften, watch.look_every);
  for (int rank = 0; rank < run.cluster.local_size(); ++rank) {
    const bool apart = run.cluster.console.apart.at(static_cast<std::size_t>(rank));
    options.logs.push_back({logs.find_worker_log(rank)});
    if (apart) options.logs.back().push_back(logs.find_error_log(rank));
  }
  return options;
}

// "0", "1", "1.err", as LogTimes knows them.
std::vector<std::string> log_names(const ConsolePlan& plan) {
  std::vector<std::string> names;
  for (std::size_t rank = 0; rank < plan.apart.size(); ++rank) {
    names.push_back(std::to_string(rank));
    if (plan.apart[rank]) names.push_back(names.back() + ".err");
  }
  return names;
}

// Ranks that nobody is shown are left in peace.
Clock::duration pause_between_looks(const ClusterSpec& cluster) {
  if (cluster.console.logs.empty()) return LogTimes::kPause;
  return FolderWatch::kUnseen;
}

SupervisorOptions supervisor_options(const NodeRun& run) {
  const LaunchOptions& options = run.options;
  const auto& signals = options.signals_to_handle.value;
  return {.stop_signals = signals ? signals->numbers : std::vector<int>(),
          .grace = options.grace.value,
          .kill_wait = options.kill_wait.value,
          .timeout = options.timeout.value,
          .early_exit_wait = options.early_exit_wait.value,
          .restart = {.most = options.max_restart.value, .first_delay = options.restart_delay.value}};
}

}  // namespace

Supervision::Supervision(const NodeRun& run, int front_fd, const LogFolder& logs, ExitReport& report)
    : run_(run),
      logs_(logs),
      report_(report),
      console_(loop_, run.options.log_level.value),
      support_(make_support()),
      attempts_(run, logs, report.run_id, support_.get()),
      progress_(loop_, pages(), run.environment),
      times_(loop_, logs, log_names(run.cluster.console)),
      disk_(loop_, logs, [this](std::string_view line) { console_.say(line); }),
      folder_(loop_, logs.path(), pause_between_looks(run.cluster), [this] { look_at_logs(); }),
      group_(loop_, run.cluster.local_size(), group_options(front_fd)),
      waits_(
          loop_, run.options.grace.value, [this]() -> const Verdict& { return group_.verdict(); },
          [this](std::string_view line) { console_.say(line); }),
      roll_(loop_, run.environment, {group_, logs_, pages(), console_}),
      hangs_(loop_, hang_options(run, logs), group_, pages()),
      control_{group_, logs, report, pages()},
      control_server_(loop_, logs,
                      [this](const std::string& request, const std::string& sender) {
                        return control_.answer(request, sender);
                      }),
      metrics_(loop_, run.options, {group_, pages(), report},
               [this](std::string_view line) { console_.say(line); }) {
  console_.out.before_write([this] { progress_.clear(); });
  console_.err.before_write([this] { progress_.clear(); });
  for (int rank = 0; rank < run.cluster.local_size(); ++rank) report.logs.push_back(logs.worker_log(rank));
}

void Supervision::run() {
  group_.run_until_done();
  control_server_.close();
  disk_.look();
  if (is_kept(report_))
    report_end_of_pause(group_.verdict(), report_);
  else
    report_present_attempt();
  end_report(logs_, roll_.lines(), report_);
  metrics_.finish(report_.verdict.exit_code);
  try_to_write_report();  // before the console, which may take its time
  show_end();
}

std::unique_ptr<RuntimeSupport> Supervision::make_support() {
  if (!run_.job) return nullptr;
  return std::make_unique<RuntimeSupport>(loop_, run_.cluster.host, run_.cluster.local_size(), report_.run_id,
                                          [this](std::string_view line) { console_.say(line); });
}

ProcessGroupOptions Supervision::group_options(int front_fd) {
  return {.supervisor = supervisor_options(run_),
          .front_fd = front_fd,
          .use_cgroup = run_.options.cgroup.value != UseCgroup::none,
          .prepare = [this](int attempt) { return prepare(attempt); },
          .observe = [this](const Event& event, const Verdict& verdict) { observe(event, verdict); },
          .attempt_ended = [this](Clock::duration delay) { end_attempt(delay); },
          .call_roll = [this] { roll_.call([this] { group_.tell(RollCalled{}); }); },
          .say = [this](std::string_view line) { console_.say(line); }};
}

Patience Supervision::patience() {
  return {kReaderPatience, [this] { return group_.stop_requested(); }};
}

Attempt Supervision::prepare(int number) {
  Attempt attempt = attempts_.prepare(number);
  if (number == 0 && !run_.quiet) {
    for (const std::string& warning : run_.warnings) console_.say("warning: " + warning);
    if (!logs_.warning().empty()) console_.say("warning: " + logs_.warning());
    for (const std::string& note : run_.options.notes) console_.say(note);
    announce_start(run_.options, run_.cluster, attempt.workers, console_);
    if (run_.job)
      for (const std::string& note : run_.job->notes) console_.say(note);
  }
  hangs_.follow_new_logs();
  roll_.forget();
  waits_.begin_attempt();
  times_.begin_attempt();
  views_.push_back(view_logs(number));
  return attempt;
}

std::unique_ptr<ConsoleView> Supervision::view_logs(int attempt) {
  const LaunchOptions& options = run_.options;
  const ConsolePlan& plan = run_.cluster.console;
  const LogPrefix usual = {plan.shows_many() ? kUsualPrefix : ""};
  const LogPrefix plain = options.log_prefix.value.value_or(usual);
  const bool chosen = options.log_prefix.origin != Origin::fallback;
  const LogPrefix tagged = chosen ? plain : options.tee_prefix.value.prefix;
  std::vector<ConsoleSource> sources;
  for (const ShownLog& log : plan.logs) {
    const bool errors = log.stream == LogStream::err;
    sources.push_back(
        {.log = errors ? logs_.find_error_log(log.local_rank) : logs_.find_worker_log(log.local_rank),
         .prefix = log.tagged ? tagged : plain,
         .place = {.rank = log.local_rank,
                   .local_rank = log.local_rank,
                   .host = report_.host,
                   .attempt = attempt,
                   .role = options.role.value},
         .stream = errors ? &console_.err : &console_.out});
  }
  return std::make_unique<ConsoleView>(loop_, sources);
}

void Supervision::look_at_logs() {
  times_.look();
  views_.back()->look();
}

void Supervision::observe(const Event& event, const Verdict& verdict) {
  announce_event(event, verdict, report_.command, console_);
  waits_.look();
  const auto* signal = std::get_if<SignalReceived>(&event);
  if (signal != nullptr && signal->signal == SIGTSTP) {
    hangs_.pause();
    console_.hold();
  }
  if (signal != nullptr && signal->signal == SIGCONT) {
    hangs_.resume();
    console_.release();
  }
}

void Supervision::report_present_attempt() {
  report_attempt(group_, logs_, pages(), report_);
  const bool called = !roll_.collectives().ranks.empty();  // then it is that moment that counts
  report_collectives(called ? roll_.collectives() : read_collectives(pages()), logs_, report_);
  report_.log_disk_full = disk_.was_full();
  if (const std::string limit = limit_behind_failure(); !limit.empty())
    report_.evidence.facts.push_back(limit);
}

std::string Supervision::limit_behind_failure() const {
  const Verdict& verdict = report_.verdict;
  if (verdict.cause == Cause::spawn)
    return describe_spawn_limit(verdict.spawn_error, report_.command, attempts_.environment());
  if (verdict.cause != Cause::killed) return "";
  const auto rank = static_cast<std::size_t>(*verdict.rank);
  return describe_death_limit(*verdict.ranks.at(rank).status, report_.workers.at(rank).cpu_seconds,
                              read_deadly_limits());
}

void Supervision::end_attempt(Clock::duration delay) {
  report_present_attempt();
  views_.back()->finish(patience());
  console_.show(describe(report_));
  keep_attempt(logs_, report_);
  announce_restart(group_.verdict().attempt + 1, run_.options.max_restart.value, delay,
                   report_.attempts.back(), console_);
}

// A run does not fail because its report does not fit on the disk.
void Supervision::try_to_write_report() {
  logs_.release_reserve();
  try {
    write_report(logs_, report_);
  } catch (const Error& error) {
    console_.say(error.message());
  }
}

void Supervision::show_end() {
  const bool all_shown = views_.back()->finish(patience());
  if (is_kept(report_))  // what its ranks did was shown before the pause
    console_.say(describe_cause(report_.verdict, report_.command));
  else
    console_.show(describe(report_));
  if (!all_shown)
    console_.say(fmt::format("nobody reads our output; the rest of it is in {}", report_.logs.front()));
  if (report_.verdict.cause == Cause::finished) console_.log(LogLevel::info, "Local processes completed.");
  console_.err.drain(patience());
}

}  // namespace fleetrun::launch
