#include "launch/run_node.h"

#include <unistd.h>

#include <filesystem>

#include <fmt/format.h>

#include "base/error.h"
#include "base/file.h"
#include "launch/banner.h"
#include "launch/event_loop.h"
#include "launch/log_folder.h"
#include "launch/log_follower.h"
#include "launch/output_stream.h"
#include "launch/port_guard.h"
#include "launch/process_group.h"
#include "launch/report.h"
#include "launch/worker_plan.h"

namespace fleetrun::launch {
namespace {

using WallClock = std::chrono::system_clock;

constexpr std::size_t kLastLines = 20;                     // of a failed rank's log, as one screen takes
constexpr auto kReaderPatience = std::chrono::seconds(2);  // for a reader of our output that takes nothing
constexpr std::size_t kMostTrainBytes = 16 * 1024 * 1024;  // of log/train.json

struct Console {
  explicit Console(EventLoop& loop) : out(loop, STDOUT_FILENO), err(loop, STDERR_FILENO) {}
  void log(std::string_view level, std::string_view message) {
    err.write(log_text(level, WallClock::now(), message));
  }

  OutputStream out, err;
};

std::string make_run_id(const LaunchOptions& options) {
  const auto now = std::chrono::duration_cast<std::chrono::milliseconds>(WallClock::now().time_since_epoch());
  return fmt::format("{}-{:x}-{:x}", options.job_id.value, now.count(), ::getpid());
}

// In the order of the original's output.
void announce(const NodeRun& run, const std::vector<WorkerSpec>& workers, Console& console) {
  const ClusterSpec& cluster = run.cluster;
  const bool cuda = cluster.device == Device::cuda;
  console.out.write(configuration_banner(run.options));
  if (!run.options.mode_flags.empty())
    console.log("INFO",
                fmt::format("Run collective {}mode. gpu arguments:{}, cuda count:{}", cuda ? "gpu " : "",
                            python_list(run.options.mode_flags), cluster.visible_gpus.size()));
  console.out.write(cuda ? "launch train in GPU mode\n" : "launch train in CPU mode\n");
  if (!cluster.note.empty()) console.log("INFO", cluster.note);
  console.log("INFO",
              fmt::format("Local start {} processes. First process distributed environment info (Only "
                          "For Debug): \n{}",
                          workers.size(), environment_table(workers.front().environment)));
  const std::string& log_dir = run.options.log_dir.value;
  console.log("INFO",
              fmt::format("details abouts PADDLE_TRAINER_ENDPOINTS can be found in {0}/endpoints.log, and "
                          "detail running logs maybe found in {0}/workerlog.0",
                          log_dir));
}

void tell(const Event& event, const Verdict& verdict, const std::vector<std::string>& command,
          Console& console) {
  const bool first_failure = std::holds_alternative<WorkerExited>(event) && verdict.rank &&
                             std::get<WorkerExited>(event).rank == *verdict.rank;
  if (first_failure)
    console.log("ERROR",
                fmt::format("ABORT!!! Out of all {} trainers, the trainer process with rank=[{}] was "
                            "aborted. Please check its log.",
                            verdict.ranks.size(), *verdict.rank));
  if (std::holds_alternative<StopRequested>(event) && verdict.cause == Cause::stopped)
    console.err.write(
        fmt::format("fleetrun: {}, waiting for the ranks to end; Ctrl-C (again) kills them now\n",
                    describe_cause(verdict, command)));
}

std::string read_train_report(const LogFolder& logs) {
  try {
    return read_file(logs.file("train.json"), kMostTrainBytes);
  } catch (const Error&) {
    return "";  // only the embedded runtime writes one
  }
}

void finish_report(ExitReport& report, const LogFolder& logs) {
  if (report.verdict.rank)
    report.last_lines = read_last_lines(logs.worker_log(*report.verdict.rank), kLastLines);
  report.train = read_train_report(logs);
  report.ended = WallClock::now();
}

// Fills the report as far as it comes, also when it throws.
void supervise(const NodeRun& run, int front_fd, const LogFolder& logs, ExitReport& report) {
  const HeldPorts ports = hold_ports(run.cluster);
  logs.write_endpoints(ports.endpoints.ranks);
  std::vector<WorkerSpec> workers = plan_workers({.cluster = run.cluster,
                                                  .endpoints = ports.endpoints,
                                                  .program = run.program,
                                                  .environment = run.environment,
                                                  .log_dir = logs.path(),
                                                  .absolute_log_dir = logs.absolute(),
                                                  .run_id = report.run_id,
                                                  .embedded = {}});
  std::vector<UniqueFd> outputs;
  for (const WorkerSpec& worker : workers) {
    outputs.push_back(logs.open_worker_log(static_cast<int>(outputs.size())));
    report.logs.push_back(worker.log_path);
  }
  EventLoop loop;
  Console console(loop);
  announce(run, workers, console);
  LogFollower echo(loop, console.out, logs.worker_log(0));
  ProcessGroup group(loop, std::move(workers), std::move(outputs),
                     {.supervisor = {.grace = run.options.grace.value},
                      .front_fd = front_fd,
                      .observe = [&](const Event& event, const Verdict& verdict) {
                        tell(event, verdict, report.command, console);
                      }});
  report.verdict = group.run_until_done();
  report.workers = group.records();
  report.survivors = group.survivors();
  finish_report(report, logs);
  const bool all_shown = echo.finish(kReaderPatience);
  console.err.write(describe(report));
  if (!all_shown)
    console.err.write(
        fmt::format("fleetrun: nobody reads our output; the rest of it is in {}\n", report.logs[0]));
  if (report.verdict.cause == Cause::finished) console.log("INFO", "Local processes completed.");
  console.err.drain(kReaderPatience);
}

}  // namespace

int run_node(const NodeRun& run, int front_fd) {
  ExitReport report;
  report.started = WallClock::now();
  report.run_id = make_run_id(run.options);
  report.job_id = run.options.job_id.value;
  report.command = run.program.argv;
  const LogFolder logs(run.options.log_dir.value);
  try {
    supervise(run, front_fd, logs, report);
  } catch (const Error& error) {
    report.error = error.message();
    report.verdict.exit_code = error.exit_code();
    report.ended = WallClock::now();
    write_file_atomically(logs.file("report.json"), report_json(report));
    throw;
  }
  write_file_atomically(logs.file("report.json"), report_json(report));
  return report.verdict.exit_code;
}

}  // namespace fleetrun::launch
