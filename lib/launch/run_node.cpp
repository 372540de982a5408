#include "launch/run_node.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/file.h"
#include "launch/announcements.h"
#include "launch/attempts.h"
#include "launch/console.h"
#include "launch/console_view.h"
#include "launch/control_requests.h"
#include "launch/control_server.h"
#include "launch/death_evidence.h"
#include "launch/event_loop.h"
#include "launch/folder_watch.h"
#include "launch/hang_monitor.h"
#include "launch/last_lines.h"
#include "launch/limits.h"
#include "launch/log_folder.h"
#include "launch/log_times.h"
#include "launch/process_group.h"
#include "launch/progress_line.h"
#include "launch/report.h"
#include "launch/roll_call.h"
#include "launch/roll_caller.h"
#include "launch/runtime_support.h"

namespace fleetrun::launch {
namespace {

using WallClock = std::chrono::system_clock;

constexpr std::size_t kLastLines = 30;                     // of a failed rank's log, as one screen takes
constexpr auto kReaderPatience = std::chrono::seconds(2);  // for a reader of our output that takes nothing
constexpr auto kLookAtDiskEvery = std::chrono::seconds(10);
constexpr auto kTellDiskEvery = std::chrono::minutes(1);
constexpr int kLooks = 10;  // at the ranks within the time of a hang
constexpr Clock::duration kLookEvery = std::chrono::seconds(1), kLookOften = std::chrono::milliseconds(50);
constexpr const char* kUsualPrefix = "[{rank}] ";          // when lines of several ranks are shown
constexpr std::size_t kMostTrainBytes = 16 * 1024 * 1024;  // of log/train.json

std::string make_run_id(const LaunchOptions& options) {
  const auto now = std::chrono::duration_cast<std::chrono::milliseconds>(WallClock::now().time_since_epoch());
  return fmt::format("{}-{:x}-{:x}", options.job_id.value, now.count(), ::getpid());
}

std::string host_name() {
  char name[256] = "";  // longer than HOST_NAME_MAX
  ::gethostname(name, sizeof name - 1);
  return name;
}

ExitReport begin_report(const NodeRun& run) {
  ExitReport report;
  report.started = WallClock::now();
  report.run_id = make_run_id(run.options);
  report.job_id = run.options.job_id.value;
  report.command = run.program.argv;
  report.host = host_name();
  report.memory_before = read_memory_cgroup();
  return report;
}

std::string read_train_report(const LogFolder& logs) {
  try {
    return read_file(logs.file("train.json"), kMostTrainBytes);
  } catch (const Error&) {
    return "";  // only the embedded runtime writes one
  }
}

// What is known of the present attempt; before its logs are moved.
void report_attempt(const ProcessGroup& group, const LogFolder& logs,
                    const std::vector<ProgressPagePtr>& pages, ExitReport& report) {
  report.verdict = group.verdict();
  report.workers = group.records();
  report.survivors.clear();
  for (const pid_t pid : group.survivors()) report.survivors.push_back(describe_stuck(pid));
  report.last_lines.clear();
  report.evidence = {};
  report.step.reset();
  if (!report.verdict.rank) return;
  const int rank = *report.verdict.rank;
  if (!pages.empty()) report.step = pages.at(static_cast<std::size_t>(rank))->step.load();
  const auto& status = report.verdict.ranks.at(static_cast<std::size_t>(rank)).status;
  report.last_lines = read_last_lines(logs.worker_log(rank), kLastLines);
  if (!status || status->ok()) return;
  report.evidence = gather_evidence({.rank = rank,
                                     .pid = report.workers.at(static_cast<std::size_t>(rank)).pid,
                                     .status = *status,
                                     .log = logs.worker_log(rank),
                                     .error_file = logs.file(fmt::format("error.{}.json", rank)),
                                     .last_lines = report.last_lines,
                                     .memory_before = report.memory_before});
}

void keep_attempt(const LogFolder& logs, ExitReport& report) {
  report.attempts.push_back({.message = describe_failure(report),
                             .exit_code = report.verdict.exit_code,
                             .logs = logs.file(fmt::format("attempt-{}", report.verdict.attempt)),
                             .ended = WallClock::now()});
}

void end_report(const LogFolder& logs, const RollCaller& roll, ExitReport& report) {
  report.roll_call = roll.lines();
  report.train = read_train_report(logs);
  report.ended = WallClock::now();
}

void write_report(const LogFolder& logs, const ExitReport& report) {
  replace_file(logs.file("report.json"), report_json(report));
}

void show_end(const ExitReport& report, const Patience& patience, ConsoleView& view, Console& console) {
  const bool all_shown = view.finish(patience);
  console.err.write(describe(report));
  if (!all_shown)
    console.say(fmt::format("nobody reads our output; the rest of it is in {}", report.logs.front()));
  if (report.verdict.cause == Cause::finished) console.log(LogLevel::info, "Local processes completed.");
  console.err.drain(patience);
}

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
  for (int rank = 0; rank < run.cluster.local_size(); ++rank) options.logs.push_back(logs.worker_log(rank));
  return options;
}

SupervisorOptions supervisor_options(const NodeRun& run) {
  const LaunchOptions& options = run.options;
  return {.grace = options.grace.value,
          .kill_wait = options.kill_wait.value,
          .timeout = options.timeout.value,
          .early_exit_wait = options.early_exit_wait.value,
          .restart = {.most = options.max_restart.value, .first_delay = options.restart_delay.value}};
}

// One run from its first attempt to its report. Everything that lives as long as the run, and what happens between
// the parts.
class Supervision {
 public:
  Supervision(const NodeRun& run, int front_fd, const LogFolder& logs, ExitReport& report)
      : run_(run),
        logs_(logs),
        report_(report),
        console_(loop_, run.options.log_level.value),
        support_(make_support()),
        attempts_(run, logs, report.run_id, support_.get()),
        progress_(loop_, pages()),
        times_(loop_, logs.path(), run.cluster.local_size()),
        folder_(loop_, logs.path(), [this] { look_at_logs(); }),
        group_(loop_, run.cluster.local_size(),
               {.supervisor = supervisor_options(run),
                .front_fd = front_fd,
                .use_cgroup = run.options.cgroup.value != UseCgroup::none,
                .prepare = [this](int attempt) { return prepare(attempt); },
                .observe = [this](const Event& event, const Verdict& verdict) { observe(event, verdict); },
                .attempt_ended = [this](Clock::duration delay) { end_attempt(delay); },
                .call_roll = [this] { roll_.call([this] { group_.tell(RollCalled{}); }); },
                .say = [this](std::string_view line) { console_.say(line); }}),
        roll_(loop_, run.environment, {group_, logs_, pages(), console_}),
        hangs_(loop_, hang_options(run, logs), group_, pages()),
        control_{group_, logs, report, pages()},
        control_server_(loop_, logs.path(),
                        [this](const std::string& request) { return control_.answer(request); }) {
    console_.out.before_write([this] { progress_.clear(); });
    console_.err.before_write([this] { progress_.clear(); });
    for (int rank = 0; rank < run.cluster.local_size(); ++rank) report.logs.push_back(logs.worker_log(rank));
  }

  void run() {
    look_at_disk_later();
    group_.run_until_done();
    report_present_attempt();
    end_report(logs_, roll_, report_);
    look_at_disk();
    try_to_write_report();  // before the console, which may take its time
    show_end(report_, patience(), *views_.back(), console_);
  }

 private:
  std::unique_ptr<RuntimeSupport> make_support() {
    if (!run_.job) return nullptr;
    return std::make_unique<RuntimeSupport>(loop_, run_.cluster.local_size(), report_.run_id,
                                            [this](std::string_view line) { console_.say(line); });
  }

  const std::vector<ProgressPagePtr>& pages() const { return support_ ? support_->pages() : no_pages_; }
  Patience patience() const {
    return {kReaderPatience, [this] { return group_.stop_requested(); }};
  }

  Attempt prepare(int number) {
    Attempt attempt = attempts_.prepare(number);
    if (number == 0) {
      for (const std::string& warning : run_.warnings) console_.say("warning: " + warning);
      announce_start(run_.options, run_.cluster, attempt.workers, console_);
      if (run_.job)
        for (const std::string& note : run_.job->notes) console_.say(note);
    }
    hangs_.follow_new_logs();
    times_.begin_attempt();
    views_.push_back(view_logs(number));
    return attempt;
  }

  void look_at_logs() {
    times_.look();
    views_.back()->look();
  }

  std::unique_ptr<ConsoleView> view_logs(int attempt) {
    const std::vector<int>& ranks = run_.cluster.shown_ranks;
    std::vector<ConsoleSource> sources;
    for (const int rank : ranks)
      sources.push_back({logs_.worker_log(rank),
                         {.rank = rank, .local_rank = rank, .host = report_.host, .attempt = attempt}});
    const LogPrefix usual = {ranks.size() > 1 ? kUsualPrefix : ""};
    const LogPrefix prefix = run_.options.log_prefix.value.value_or(usual);
    return std::make_unique<ConsoleView>(loop_, console_.out, prefix, sources);
  }

  void observe(const Event& event, const Verdict& verdict) {
    announce_event(event, verdict, report_.command, console_);
    const auto* signal = std::get_if<SignalReceived>(&event);
    if (signal != nullptr && signal->signal == SIGTSTP) hangs_.pause();
    if (signal != nullptr && signal->signal == SIGCONT) hangs_.resume();
  }

  void report_present_attempt() {
    report_attempt(group_, logs_, pages(), report_);
    if (report_.verdict.cause != Cause::spawn) return;
    const std::string limit =
        describe_spawn_limit(report_.verdict.spawn_error, report_.command, attempts_.environment());
    if (!limit.empty()) report_.evidence.facts.push_back(limit);
  }

  // Workers write their logs themselves, so that we can only see that the disk has no room.
  void look_at_disk() {
    if (!is_disk_full(logs_.path())) return;
    if (!std::exchange(report_.log_disk_full, true) || Clock::now() - disk_told_ >= kTellDiskEvery) {
      disk_told_ = Clock::now();
      console_.say(
          fmt::format("log disk full: lines of the ranks that do not fit in {}/ are lost", logs_.path()));
    }
  }

  void look_at_disk_later() {
    loop_.call_at(Clock::now() + kLookAtDiskEvery, [this] {
      look_at_disk();
      look_at_disk_later();
    });
  }

  // A run does not fail because its report does not fit on the disk.
  void try_to_write_report() {
    logs_.release_reserve();
    try {
      write_report(logs_, report_);
    } catch (const Error& error) {
      console_.say(error.message());
    }
  }

  void end_attempt(Clock::duration delay) {
    report_present_attempt();
    keep_attempt(logs_, report_);
    views_.back()->finish(patience());
    console_.err.write(describe(report_));
    announce_restart(group_.verdict().attempt + 1, run_.options.max_restart.value, delay,
                     report_.attempts.back(), console_);
  }

  const NodeRun& run_;
  const LogFolder& logs_;
  ExitReport& report_;
  const std::vector<ProgressPagePtr> no_pages_;
  TimePoint disk_told_;
  EventLoop loop_;
  Console console_;
  std::unique_ptr<RuntimeSupport> support_;
  Attempts attempts_;
  ProgressLine progress_;
  LogTimes times_;
  FolderWatch folder_;
  ProcessGroup group_;
  RollCaller roll_;
  HangMonitor hangs_;
  RunControl control_;
  ControlServer control_server_;
  std::vector<std::unique_ptr<ConsoleView>> views_;  // of every attempt: the loop may still call earlier ones
};

}  // namespace

int run_node(const NodeRun& run, int front_fd) {
  raise_descriptor_limit(run.cluster.local_size());
  ExitReport report = begin_report(run);
  const LogFolder logs(run.options.log_dir.value);
  try {
    Supervision(run, front_fd, logs, report).run();
  } catch (const Error& error) {
    if (report.ended != WallClock::time_point()) throw;  // the report was complete, and could not be written
    report.error = error.message();
    report.verdict.exit_code = error.exit_code();
    report.ended = WallClock::now();
    write_report(logs, report);
    throw;
  }
  return report.verdict.exit_code;
}

}  // namespace fleetrun::launch
