#include "launch/run_node.h"

#include <unistd.h>

#include <chrono>
#include <filesystem>

#include <fmt/format.h>

#include "base/error.h"
#include "base/file.h"
#include "launch/announcements.h"
#include "launch/console.h"
#include "launch/event_loop.h"
#include "launch/folder_watch.h"
#include "launch/log_folder.h"
#include "launch/log_follower.h"
#include "launch/port_guard.h"
#include "launch/process_group.h"
#include "launch/progress_line.h"
#include "launch/report.h"
#include "launch/runtime_support.h"
#include "launch/worker_plan.h"

namespace fleetrun::launch {
namespace {

using WallClock = std::chrono::system_clock;

constexpr std::size_t kLastLines = 20;                     // of a failed rank's log, as one screen takes
constexpr auto kReaderPatience = std::chrono::seconds(2);  // for a reader of our output that takes nothing
constexpr std::size_t kMostTrainBytes = 16 * 1024 * 1024;  // of log/train.json

std::string make_run_id(const LaunchOptions& options) {
  const auto now = std::chrono::duration_cast<std::chrono::milliseconds>(WallClock::now().time_since_epoch());
  return fmt::format("{}-{:x}-{:x}", options.job_id.value, now.count(), ::getpid());
}

ExitReport begin_report(const NodeRun& run) {
  ExitReport report;
  report.started = WallClock::now();
  report.run_id = make_run_id(run.options);
  report.job_id = run.options.job_id.value;
  report.command = run.program.argv;
  return report;
}

std::string read_train_report(const LogFolder& logs) {
  try {
    return read_file(logs.file("train.json"), kMostTrainBytes);
  } catch (const Error&) {
    return "";  // only the embedded runtime writes one
  }
}

void end_report(const ProcessGroup& group, const LogFolder& logs, ExitReport& report) {
  report.workers = group.records();
  report.survivors = group.survivors();
  if (report.verdict.rank)
    report.last_lines = read_last_lines(logs.worker_log(*report.verdict.rank), kLastLines);
  report.train = read_train_report(logs);
  report.ended = WallClock::now();
}

void write_report(const LogFolder& logs, const ExitReport& report) {
  replace_file(logs.file("report.json"), report_json(report));
}

void show_end(const ExitReport& report, const Patience& patience, LogFollower& echo, Console& console) {
  const bool all_shown = echo.finish(patience);
  console.err.write(describe(report));
  if (!all_shown)
    console.say(fmt::format("nobody reads our output; the rest of it is in {}", report.logs.front()));
  if (report.verdict.cause == Cause::finished) console.log("INFO", "Local processes completed.");
  console.err.drain(patience);
}

std::optional<EmbeddedPlan> plan_embedded(const NodeRun& run, const std::optional<RuntimeSupport>& support) {
  if (!run.job) return std::nullopt;
  EmbeddedPlan plan = support->plan(run.job->spec);
  const std::string& dump_dir = run.options.dump_program.value;
  if (!dump_dir.empty()) plan.dump_dir = std::filesystem::absolute(dump_dir).string();
  return plan;
}

// Fills the report as far as it comes, also when it throws.
void supervise(const NodeRun& run, int front_fd, const LogFolder& logs, ExitReport& report) {
  EventLoop loop;
  Console console(loop);
  const HeldPorts ports = hold_ports(run.cluster);
  logs.write_endpoints(ports.endpoints.ranks);
  std::optional<RuntimeSupport> support;
  if (run.job)
    support.emplace(loop, run.cluster.local_size(), report.run_id,
                    [&](std::string_view line) { console.say(line); });
  std::vector<WorkerSpec> workers = plan_workers({.cluster = run.cluster,
                                                  .endpoints = ports.endpoints,
                                                  .program = run.program,
                                                  .environment = run.environment,
                                                  .log_dir = logs.path(),
                                                  .absolute_log_dir = logs.absolute(),
                                                  .run_id = report.run_id,
                                                  .embedded = plan_embedded(run, support)});
  std::vector<UniqueFd> outputs;
  for (std::size_t i = 0; i < workers.size(); ++i) {
    outputs.push_back(logs.open_worker_log(static_cast<int>(i)));
    report.logs.push_back(workers[i].log_path);
  }
  announce_start(run.options, run.cluster, workers, console);
  if (run.job)
    for (const std::string& note : run.job->notes) console.say(note);
  const std::vector<ProgressPagePtr> no_pages;
  ProgressLine progress(loop, support ? support->pages() : no_pages);
  console.out.before_write([&] { progress.clear(); });
  console.err.before_write([&] { progress.clear(); });
  LogFollower echo(loop, console.out, logs.worker_log(0));
  const FolderWatch watch(loop, logs.path(), [&] { echo.look(); });
  ProcessGroup group(loop, std::move(workers), std::move(outputs),
                     {.supervisor = {.grace = run.options.grace.value},
                      .front_fd = front_fd,
                      .observe = [&](const Event& event, const Verdict& verdict) {
                        announce_event(event, verdict, report.command, console);
                      }});
  report.verdict = group.run_until_done();
  end_report(group, logs, report);
  write_report(logs, report);  // before the console, which may take its time
  show_end(report, {kReaderPatience, [&] { return group.stop_requested(); }}, echo, console);
}

}  // namespace

int run_node(const NodeRun& run, int front_fd) {
  ExitReport report = begin_report(run);
  const LogFolder logs(run.options.log_dir.value);
  try {
    supervise(run, front_fd, logs, report);
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
