#include "launch/run/announcements.h"

#include <unistd.h>

#include <csignal>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/text/name_ranks.h"
#include "base/text/plural.h"
#include "base/text/printable.h"
#include "launch/console/banner.h"
#include "launch/console/terminal.h"
#include "launch/host/core_binding.h"
#include "launch/logs/log_names.h"
#include "launch/plan/membership.h"
#include "launch/process/proc_files.h"
#include "launch/process/signals.h"
#include "launch/report/report.h"

namespace fleetrun::launch {

namespace {

// --banner wins over what other flags imply.
Banner banner_of(const LaunchOptions& options) {
  if (options.banner.origin != Origin::fallback) return options.banner.value;
  const RankSet& console = options.console.value;
  const bool shows_ranks = console.all || !console.ranges.empty();
  const bool logs = options.log_level.value <= LogLevel::info;
  return options.called_as == CalledAs::fleetrun && shows_ranks && logs ? Banner::paddle : Banner::none;
}

void announce_briefly(const LaunchOptions& options, const ClusterSpec& cluster, Console& console) {
  console.say(fmt::format("{} of {} on {}, logs in {}/", plural(cluster.local_size(), "rank"),
                          options.program, cluster.device == DeviceKind::cuda ? "GPUs" : "the CPU",
                          options.log_dir.value));
}

std::size_t width_of(const Console& console) {
  return console.out.is_terminal() ? terminal_width(STDOUT_FILENO) : kTableColumns;
}

void announce_as_paddle(const LaunchOptions& options, const ClusterSpec& cluster,
                        const std::vector<WorkerSpec>& workers, Console& console) {
  const bool cuda = cluster.device == DeviceKind::cuda;
  console.out.write(printable_lines(configuration_banner(options)));
  if (!options.mode_flags.empty())
    console.log(LogLevel::info,
                fmt::format("Run collective {}mode. gpu arguments:{}, cuda count:{}", cuda ? "gpu " : "",
                            python_list(options.mode_flags), cluster.visible_gpus.size()));
  console.out.write(cuda ? "launch train in GPU mode\n" : "launch train in CPU mode\n");
  if (!cluster.note.empty()) console.log(LogLevel::info, cluster.note);
  console.log(
      LogLevel::info,
      fmt::format(
          "Local start {} processes. First process distributed environment info (Only For Debug): \n{}",
          workers.size(), environment_table(workers.front().environment, width_of(console))));
  console.log(
      LogLevel::info,
      fmt::format(
          "details abouts PADDLE_TRAINER_ENDPOINTS can be found in {0}/endpoints.log, and detail running logs maybe found in {0}/workerlog.0",
          options.log_dir.value));
}

void announce_signal_elsewhere(int signal, Console& console) {
  if (signal == SIGTSTP) console.say("another node was suspended, so the ranks here are suspended, too");
  if (signal == SIGCONT) console.say("the run goes on");
}

// "2 of at most 3"
std::string number_and_limit(int restart, const LaunchOptions& options) {
  const int most = most_restarts(options);
  const auto& window = options.restart_window.value;
  return window ? fmt::format("{} (at most {} in {:g} s)", restart, most, in_seconds(*window))
                : fmt::format("{} of at most {}", restart, most);
}

}  // namespace

std::string describe_previous(const ClusterSpec& cluster, const LogFolder& logs) {
  if (logs.previous().empty() || cluster.node_rank != 0) return "";
  return fmt::format("the logs of the run before are in {}/", logs.previous());
}

void announce_start(const LaunchOptions& options, const ClusterSpec& cluster,
                    const std::vector<WorkerSpec>& workers, Console& console) {
  const Banner banner = banner_of(options);
  if (banner == Banner::paddle) announce_as_paddle(options, cluster, workers, console);
  if (banner == Banner::brief) announce_briefly(options, cluster, console);
  const std::string endpoints_file = fmt::format("{}/{}", options.log_dir.value, kEndpointsName);
  if (const std::string line = describe_left_out(workers.front().left_out, endpoints_file); !line.empty())
    console.say(line);
  for (const WorkerSpec& worker : workers)
    if (!worker.cpus.empty())
      console.say(fmt::format("rank {} runs on the cores {}", worker.rank, describe_cpus(worker.cpus)));
}

void announce_event(const Event& event, const Verdict& verdict, const std::vector<std::string>& command,
                    Console& console) {
  const auto* exited = std::get_if<WorkerExited>(&event);
  if (exited != nullptr && verdict.rank == exited->rank)
    console.log(
        LogLevel::error,
        fmt::format(
            "ABORT!!! Out of all {} trainers, the trainer process with rank=[{}] was aborted. Please check its log.",
            verdict.span.world, verdict.number_of(*verdict.rank)));
  if (const auto* elsewhere = std::get_if<SignalElsewhere>(&event))
    announce_signal_elsewhere(elsewhere->signal, console);
  if (const auto* signal = std::get_if<SignalReceived>(&event))
    if (verdict.cause != Cause::finished && !verdict.killed && !ranks_still_there(verdict).empty() &&
        (ends_a_run(signal->signal) || (verdict.cause == Cause::stopped && signal->signal == verdict.signal)))
      console.say(fmt::format("{}, waiting for the ranks to end; Ctrl-C kills them now",
                              describe_cause(verdict, command)));
}

void announce_left_alone(const std::vector<PassOn>& signals, Console& console) {
  if (signals.empty()) return;
  std::vector<int> ranks;
  ranks.reserve(signals.size());
  for (const PassOn& one : signals) ranks.push_back(one.rank);
  console.say(fmt::format("{} was not passed on, because it would end {}",
                          describe_signal(signals.front().signal), name_ranks(ranks)));
}

namespace {

std::string describe_logs(const AttemptRecord& before) {
  return before.logs.empty() ? "" : fmt::format("; the logs before it are in {}/", before.logs);
}

}  // namespace

void announce_pipe_readers(const std::vector<pid_t>& readers, Console& console) {
  std::vector<std::string> names;
  names.reserve(readers.size());
  for (const pid_t pid : readers) names.push_back(printable(describe_process(pid)));
  console.say(fmt::format("waiting for what still reads the output of a rank from a pipe: {}",
                          fmt::join(names, ", ")));
}

void announce_restart(int attempt, const LaunchOptions& options, Clock::duration delay,
                      const AttemptRecord& before, Console& console) {
  console.say(fmt::format("restart {} in {:.3g} s{}", number_and_limit(attempt, options), in_seconds(delay),
                          describe_logs(before)));
}

void announce_restart_before_start(int restart, const LaunchOptions& options, const std::string& why,
                                   Console& console) {
  console.say(
      fmt::format("{}; the ranks had not started yet; restart {}", why, number_and_limit(restart, options)));
}

void announce_regrouping(const AttemptRecord& before, Console& console) {
  console.say(fmt::format("the ranks start again with other nodes{}", describe_logs(before)));
}

void announce_places(const ClusterSpec& cluster, Console& console) {
  const int first = cluster.first_rank(), last = first + cluster.local_size() - 1;
  console.say(fmt::format(
      "the run goes on with {} and {}; this is node {} with {}", plural(cluster.node_count(), "node"),
      plural(cluster.world_size(), "rank"), cluster.node_rank,
      first == last ? fmt::format("rank {}", first) : fmt::format("ranks {}-{}", first, last)));
}

}  // namespace fleetrun::launch
