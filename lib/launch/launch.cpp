#include "launch/launch.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>

#include <fmt/format.h>

#include "base/error/error.h"
#include "base/error/exit_codes.h"
#include "base/error/log.h"
#include "base/system/file.h"
#include "base/system/standard_output.h"
#include "base/text/plural.h"
#include "job/spec/settle_strategy.h"
#include "job/spec/step_share.h"
#include "launch/examine.h"
#include "launch/host/surroundings.h"
#include "launch/logs/log_folder.h"
#include "launch/logs/log_names.h"
#include "launch/logs/rank_logs.h"
#include "launch/loop/clock.h"
#include "launch/plan/cluster.h"
#include "launch/plan/membership.h"
#include "launch/plan/program.h"
#include "launch/plan/warn_before_start.h"
#include "launch/prepare.h"
#include "launch/process/exit_status.h"
#include "launch/process/guardian.h"
#include "launch/run/dry_run.h"
#include "launch/run/hang_sampler.h"
#include "launch/run/run_until_done.h"
#include "launch/run/tell_first_node.h"
#include "launch/schedulers/settle_nodes.h"
#include "launch/starters/other_nodes.h"

namespace fleetrun::launch {
namespace {

// Throws when the strategy cannot work on any device, or the ranks are more than the samples of a step. Each rank repeats this for its
// own device, since it gets only the job file and its environment; rank 0 prints the result.
void check_strategy(const job::JobSpec& job, const job::Ranks& ranks, const Environment& environment) {
  const auto variable = [&](const std::string& name) -> std::optional<std::string> {
    const auto of_job = job.env.find(name);
    return of_job != job.env.end() ? of_job->second : environment.get(name);
  };
  job::settle_strategy(job.strategy, ranks, variable);
  job::plan_shares(job, ranks.all);
}

// An elastic run goes on with any number of nodes from MIN to MAX, less the spares, so the strategy must work with each, if all nodes have
// as many ranks as this one.
void check_every_number_of_nodes(const job::JobSpec& job, const Membership& members, int ranks_of_node,
                                 const Environment& environment) {
  const int most = members.nodes - members.spares;
  for (int nodes = members.least; nodes <= most; ++nodes) {
    try {
      check_strategy(job, {nodes * ranks_of_node, ranks_of_node}, environment);
    } catch (const Error& error) {
      throw Error(
          error.kind(),
          fmt::format("the run may go on with {} and {}: {}", plural(nodes, "node"),
                      plural(nodes * ranks_of_node, "rank"), error.message()),
          "choose --nproc_per_node, --nnodes, --spares and the job so that every number of nodes that may "
          "be left works");
    }
  }
}

// With a fixed number of several nodes only the ranks check it, because the number of ranks is unknown before the nodes have joined.
void check_strategy_before_start(const std::optional<job::ParsedJob>& job, const ClusterSpec& cluster,
                                 const std::optional<Membership>& members, const LaunchOptions& options,
                                 const Environment& environment) {
  if (!job) return;
  if (!members) return check_strategy(job->spec, {cluster.world_size(), cluster.local_size()}, environment);
  if (is_elastic(options))
    check_every_number_of_nodes(job->spec, *members, cluster.local_size(), environment);
}

std::map<int, Program> wrap_programs(const LaunchOptions& options, const Program& program,
                                     const Environment& environment) {
  std::map<int, Program> wrapped;
  for (const DebugRank& debug : options.debug_rank.value)
    wrapped[debug.rank] = wrap_program(debug.wrapper, program, environment);
  return wrapped;
}

// For the logs of a user who named no folder. torchrun allows several launches at a time in one current folder, so fleetrun called
// as torchrun must, too.
std::string temporary_folder(const Environment& environment) {
  return environment.get_or("TMPDIR", "/tmp") + "/fleetrun_XXXXXX";
}

std::string make_temporary_folder(std::string path) {
  if (::mkdtemp(path.data()) == nullptr)
    throw Error(ErrorKind::create, fmt::format("creating {}: {}", path, describe_errno(errno)),
                "--log_dir chooses another folder for the logs");
  return path;
}

// Without logs no rank began to run, and the console has the reason.
bool has_logs(const std::string& folder) {
  try {
    find_logs(newest_logs(folder));
    return true;
  } catch (const Error&) {
    return false;
  }
}

// A run that has succeeded does not fail because of what it leaves behind.
void try_to_remove(const std::string& folder) {
  try {
    remove_log_folder(folder);
  } catch (const Error& error) {
    log_line("fleetrun", "warning: " + error.message());
  }
}

// A program runs without a current folder (somebody removed it) when all paths are absolute.
bool needs_current_folder(const LaunchOptions& options) {
  const std::string& logs = options.log_dir.value;
  return (!logs.empty() && !logs.starts_with('/')) || kind_of(requested_program(options)) == ProgramKind::job;
}

// "" if it was removed: then no path of the run is relative to it.
std::string folder_at_start() {
  std::error_code removed;
  return std::filesystem::current_path(removed);
}

// Otherwise the metrics could keep the run from writing its own file there.
void check_metrics_file(const LaunchOptions& options) {
  const auto& file = options.metrics_file;
  if (file.value.empty() || !is_place_of_a_run(options.log_dir.value, file.value)) return;
  throw Error(ErrorKind::usage, fmt::format("{} is {}, where the run itself writes", file.source, file.value),
              fmt::format("choose another name, such as {}/metrics.prom", options.log_dir.value));
}

// Three kinds of processes: this one, the front, only waits and passes signals on. Its child, the middle process, does all that
// run_until_done() does, and is the parent of the ranks, the third kind. If the middle process is killed, run_guarded() kills the ranks
// before it returns. Null `others`: this fleetrun has started no other node.
int run_under_guard(const RunPlan& plan, OtherNodes* others = nullptr) {
  const Moment started = Moment::now();
  bool lost = false;
  const int code = run_guarded([&](int front_fd) { return run_until_done(plan, front_fd); },
                               [&](const ExitStatus& middle) {
                                 lost = true;
                                 report_lost_run(plan, started, middle);
                               });
  if (others != nullptr && !lost) others->run_has_ended();
  return code;
}

void note_useless_console(LaunchOptions& options) {
  if (!options.interactive.value || options.console.origin == Origin::fallback) return;
  options.notes.push_back(fmt::format("{} has no effect with {}; fleetrun logs shows the output of the ranks",
                                      options.console.source, options.interactive.source));
}

void plan_the_stop(RunPlan& plan, const std::optional<job::ParsedJob>& job) {
  plan.saves_when_stopped = !job || job->spec.checkpoint.dir.has_value();
  if (job && !plan.quiet)
    plan.stop = plan_stop(job->spec.checkpoint, {::isatty(STDERR_FILENO) == 1, !plan.members});
}

void expect_news(const OtherNodes& others, RunPlan& plan) {
  plan.starter_news = others.news_fd();
  plan.order_file = others.order_file();
}

// --dry_run. Returns the exit code.
int show_plan(const RunPlan& plan) {
  for (const std::string& note : plan.options.notes) log_line("fleetrun", note);
  print_answer(dry_run(plan));
  return 0;
}

int check_and_run(LaunchOptions options, const Environment& environment,
                  const std::optional<Allocation>& allocation, const std::vector<std::string>& words) {
  check_umask();
  if (needs_current_folder(options)) current_folder();
  const bool temporary = options.log_dir.value.empty();
  if (temporary) options.log_dir.value = temporary_folder(environment);
  check_metrics_file(options);
  check_hang_timeout(options);
  const std::optional<job::ParsedJob> job = read_job(options);
  const std::optional<EmbeddedRuntime> embedded = runtime_of(job);
  const Program program = find_program(requested_program(options), environment);
  const std::map<int, Program> wrapped = wrap_programs(options, program, environment);
  const HostFacts host = probe(options);
  note_flags_of_several_nodes(options);
  note_useless_console(options);
  if (options.dry_run.value.empty())
    if (const int signal = wait_for_names(options, environment, options.join_timeout.value); signal != 0)
      return kSignalExitCode + signal;
  const std::optional<Membership> members = find_members(options, host);
  if (members) use_log_folder_of_node(options, *members, allocation);
  const ClusterSpec cluster = resolve_cluster(options, host, embedded, environment, members);
  const bool evaluates = !options.eval.value.empty();
  if (!evaluates)  // a strategy is for steps
    check_strategy_before_start(job, cluster, members, options, environment);
  const std::vector<std::string> warnings = warn_before_start({options, environment, embedded, cluster});
  RunPlan plan = {options, environment, program, embedded,
                  wrapped, cluster,     warnings};  // refers to all of these
  plan.folder = folder_at_start();
  plan.quiet = !options.tune.value.empty() || evaluates;
  plan.members = members;
  plan_the_stop(plan, job);
  if (!members || starts_others(options, allocation))
    set_command(program_invocation_name, words, options.arguments.size(), plan.stop);
  if (members) plan.terms = find_terms(options, cluster, job);
  if (!options.dry_run.value.empty()) return show_plan(plan);
  const std::unique_ptr<OtherNodes> others = start_others(options, environment, allocation, words);
  if (others) expect_news(*others, plan);
  if (options.preflight.value)
    if (const int code = examine_before(plan, host, job); code != 0) return code;
  if (temporary)
    options.log_dir.value = make_temporary_folder(options.log_dir.value);  // the plan sees it, too
  const int code = run_under_guard(plan, others.get());
  if (temporary && (code == 0 || !has_logs(options.log_dir.value))) try_to_remove(options.log_dir.value);
  return code;
}

}  // namespace

// In this order: the job, the program and the cluster are checked, and nothing is written; a --dry_run ends here. fleetrun starts on the
// other nodes; --preflight examines all nodes. This process forks, and the child takes the log folder, joins the other nodes, holds ports
// and spawns the ranks (run_until_done.cpp, run_loop.cpp).
int launch(const LaunchOptions& options, const Environment& environment,
           const std::optional<Allocation>& allocation, const std::vector<std::string>& words) {
  if (stays_out(options, allocation)) return 0;
  check_can_start(options, allocation);
  try {
    return check_and_run(options, environment, allocation, words);
  } catch (const Error& error) {
    tell_other_nodes(options, environment, allocation, error);
    throw;
  }
}

void tell_other_nodes(const LaunchOptions& options, const Environment& environment,
                      const std::optional<Allocation>& allocation, const Error& error) {
  if (!asks_for_several_nodes(options) || !options.dry_run.value.empty()) return;
  try {
    if (stays_out(options, allocation)) return;
    tell_first_node(*find_members(options, probe_host()), options, environment, error);
  } catch (
      const std::exception&) {  // NOLINT(bugprone-empty-catch): this node does not know where the others are
  }
}

int launch_worker_program(const LaunchOptions& options, const std::vector<std::string>& words,
                          const Environment& environment) {
  const std::optional<EmbeddedRuntime> embedded = EmbeddedRuntime{.device = options.device.value};
  const Program program = find_worker(words);
  const ClusterSpec cluster = resolve_cluster(options, probe(options), embedded, environment);
  const RunPlan plan = {.options = options,
                        .environment = environment,
                        .program = program,
                        .embedded = embedded,
                        .wrapped = {},
                        .cluster = cluster,
                        .warnings = {},
                        .folder = folder_at_start(),
                        .quiet = true};
  return run_under_guard(plan);
}

}  // namespace fleetrun::launch
