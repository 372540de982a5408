#include "launch/launch.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>

#include <fmt/format.h>

#include "base/error/error.h"
#include "base/error/log.h"
#include "base/json/json_reader.h"
#include "base/run/run_key.h"
#include "base/system/file.h"
#include "base/system/standard_output.h"
#include "job/check_inputs.h"
#include "job/parse_job.h"
#include "job/settle_strategy.h"
#include "job/step_share.h"
#include "launch/doctor/doctor.h"
#include "launch/host/core_binding.h"
#include "launch/host/host_facts.h"
#include "launch/host/surroundings.h"
#include "launch/logs/log_folder.h"
#include "launch/logs/log_names.h"
#include "launch/loop/clock.h"
#include "launch/nodes/node_key.h"
#include "launch/nodes/terms.h"
#include "launch/plan/cluster.h"
#include "launch/plan/membership.h"
#include "launch/plan/preflight.h"
#include "launch/plan/program.h"
#include "launch/process/exit_status.h"
#include "launch/process/guardian.h"
#include "launch/run/dry_run.h"
#include "launch/run/run_until_done.h"
#include "launch/run/tell_first_node.h"
#include "launch/schedulers/settle_nodes.h"
#include "launch/schedulers/topology.h"
#include "launch/starters/other_nodes.h"

namespace fleetrun::launch {
namespace {

// Nothing for a program that is not a job file. Throws everything that is wrong with a job at once, before a process is started or a
// file created.
std::optional<job::ParsedJob> read_job(const LaunchOptions& options) {
  if (kind_of(requested_program(options)) != ProgramKind::job) {
    for (const auto& [flag, folder] :
         {std::pair("--dump_program", &options.dump_program),
          std::pair("--dump_passes", &options.dump_passes), std::pair("fleetrun tune", &options.tune),
          std::pair("fleetrun eval", &options.eval)})
      if (!folder->value.empty())
        throw Error(ErrorKind::usage,
                    fmt::format("{} is for job files, and {} is none", flag, options.program));
    return std::nullopt;
  }
  job::ParsedJob job = job::parse_job_file(options.program, options.arguments);
  job::JobSpec inputs = job.spec;
  if (!options.eval.value.empty() && inputs.data.test)
    inputs.data.train = {.format = job::DataFormat::synthetic};  // is not read
  job::check_inputs(inputs);
  return job;
}

std::optional<EmbeddedRuntime> runtime_of(const std::optional<job::ParsedJob>& job) {
  if (!job) return std::nullopt;
  return EmbeddedRuntime{.device = job->spec.device,
                         .environment = job->spec.env,
                         .threads = job->spec.train.threads,
                         .notes = job->notes,
                         .values = job->values,
                         .job_text = job->text};
}

// Throws when the strategy cannot work on any device, or the ranks are more than the samples of a step. Each rank settles it again for its own device, because the job file and its
// environment are all that it gets from the launcher; rank 0 prints the result. Over several nodes only the ranks check it: before the
// nodes have joined, the number of ranks is unknown.
void check_strategy(const std::optional<job::ParsedJob>& job, const ClusterSpec& cluster, bool alone,
                    const Environment& environment) {
  if (!job || !alone) return;
  const auto variable = [&](const std::string& name) -> std::optional<std::string> {
    const auto of_job = job->spec.env.find(name);
    return of_job != job->spec.env.end() ? of_job->second : environment.get(name);
  };
  job::settle_strategy(job->spec.strategy, {cluster.world_size(), cluster.local_size()}, variable);
  job::plan_shares(job->spec, cluster.world_size());
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

// Otherwise the metrics could keep the run from writing its own file there.
void check_metrics_file(const LaunchOptions& options) {
  const auto& file = options.metrics_file;
  if (file.value.empty() || !is_place_of_a_run(options.log_dir.value, file.value)) return;
  throw Error(ErrorKind::usage, fmt::format("{} is {}, where the run itself writes", file.source, file.value),
              fmt::format("choose another name, such as {}/metrics.prom", options.log_dir.value));
}

std::optional<Membership> find_members(const LaunchOptions& options, const HostFacts& host) {
  if (!asks_for_several_nodes(options)) return std::nullopt;
  return resolve_membership(options, resolve_names(options), host);
}

// A user who lists the hosts starts the nodes by hand, and chooses their folders.
void find_log_folder(LaunchOptions& options, const Membership& members,
                     const std::optional<Allocation>& allocation) {
  if (allocation && allocation->scheduler != Scheduler::host_list)
    use_own_log_folder(options, members.node_rank.value_or(0), allocation->found_in);
}

// What the other nodes compare with their own: the text of the job file, or the words of another program.
Terms find_terms(const LaunchOptions& options, const ClusterSpec& cluster,
                 const std::optional<job::ParsedJob>& job) {
  return terms_of(options, cluster, job ? job->text : "");
}

// Null `others`: this fleetrun has started no other node.
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

bool starts_others(const LaunchOptions& options, const std::optional<Allocation>& allocation) {
  return allocation && allocation->start_by != StartBy::none && !options.given_key;
}

// The key of this run needs no file, because it goes to the other nodes with the order to start.
// Null: another fleetrun has started this one, or something else starts all nodes.
std::unique_ptr<OtherNodes> start_others(LaunchOptions& options, const Environment& environment,
                                         const std::optional<Allocation>& allocation,
                                         const std::vector<std::string>& words) {
  if (!starts_others(options, allocation)) return nullptr;
  const bool chosen = !options.key_file.value.empty() || options.insecure.value;
  options.given_key = chosen ? find_node_key(options, environment).key : make_run_key();
  return std::make_unique<OtherNodes>(plan_start(options, *allocation, words, environment));
}

// ---- fleetrun doctor.

constexpr int kFirstUsualPort = 6070;                       // of PaddlePaddle's ranks
constexpr auto kDoctorsPatience = std::chrono::seconds(5);  // the whole examination takes 10 s
constexpr auto kStartPatience = std::chrono::seconds(15);   // the same when the nodes have to be started

std::vector<std::string> data_lists_of(const job::JobSpec& spec) {
  std::vector<std::string> lists;
  const auto add = [&](const job::DataSetSpec& data) {
    for (const std::string* path : {&data.path, &data.list, &data.images, &data.labels})
      if (!path->empty()) lists.push_back(*path);
  };
  add(spec.data.train);
  if (spec.data.test) add(*spec.data.test);
  return lists;
}

// A job that cannot run here is something to report.
std::optional<job::ParsedJob> try_to_read_job(const LaunchOptions& options, const Environment& environment,
                                              std::string& problem) {
  if (options.program.empty()) return std::nullopt;
  try {
    std::optional<job::ParsedJob> job = read_job(options);
    if (!job) find_program(requested_program(options), environment);
    return job;
  } catch (const Error& error) {
    problem = error.message();
    return std::nullopt;
  }
}

void add_ports(const ClusterSpec& cluster, bool alone, ExaminedRun& run) {
  const int first = cluster.start_port ? *cluster.start_port : kFirstUsualPort;
  if (!cluster.start_port && alone) return;  // then the kernel chooses
  for (int port = first; port < first + cluster.local_size(); ++port)
    (cluster.start_port ? run.required_ports : run.usual_ports).push_back(port);
}

// The version is compared in any case, also if the job file cannot be read.
Terms examined_terms(const LaunchOptions& options, const ClusterSpec& cluster,
                     const std::optional<job::ParsedJob>& job) {
  Terms terms = find_terms(options, cluster, job);
  std::erase_if(terms, [](const auto& term) { return term.first == "fleetrun --version"; });
  return terms;
}

ExaminedRun examined_run(const PreflightRequest& request, const std::optional<Membership>& members,
                         const std::optional<job::ParsedJob>& job) {
  ExaminedRun run;
  if (members) run.address = members->address;
  run.folders = {{"--log_dir", request.options.log_dir.value}};
  run.nccl = lint_nccl_variables(request);
  add_ports(request.cluster, !members, run);
  if (!job) return run;
  run.folders.emplace_back("output.dir", job->spec.output.dir);
  if (job->spec.checkpoint.dir) run.folders.emplace_back("checkpoint.dir", *job->spec.checkpoint.dir);
  run.data_lists = data_lists_of(job->spec);
  return run;
}

Clock::duration doctors_patience(const LaunchOptions& options) {
  if (options.join_timeout.origin != Origin::fallback) return options.join_timeout.value;
  return options.given_key ? kStartPatience : kDoctorsPatience;
}

// --preflight: all nodes wait for each other as long as for the run.
int examine_before(const RunPlan& plan, const HostFacts& host, const std::optional<job::ParsedJob>& job) {
  ExaminedRun run =
      examined_run({plan.options, plan.environment, plan.embedded, plan.cluster}, plan.members, job);
  run.terms = examined_terms(plan.options, plan.cluster, job);
  return run_doctor({.options = plan.options,
                     .environment = plan.environment,
                     .cluster = plan.cluster,
                     .members = plan.members,
                     .host = host.name,
                     .run = run,
                     .join_timeout = plan.options.join_timeout.value,
                     .output = DoctorOutput::findings,
                     .starter_news = plan.starter_news});
}

// Something has started this fleetrun on a node that --exclude_hosts leaves out.
bool is_left_out(const LaunchOptions& options, const std::optional<Allocation>& allocation) {
  if (allocation && allocation->is_left_out) return true;
  if (options.left_out.empty() || options.given_key || options.node_rank.value) return false;
  const HostFacts host = probe_host();
  return std::any_of(options.left_out.begin(), options.left_out.end(), [&](const std::string& name) {
    return is_same_host(name, host.name) ||
           std::find(host.addresses.begin(), host.addresses.end(), name) != host.addresses.end();
  });
}

bool stays_out(const LaunchOptions& options, const std::optional<Allocation>& allocation) {
  if (!is_left_out(options, allocation)) return false;
  log_line("fleetrun",
           fmt::format("{} leaves out this host, so nothing runs here", options.exclude_hosts.source));
  return true;
}

HostFacts probe(const LaunchOptions& options) {
  HostFacts host = probe_host();
  if (options.bind.value == Binding::cores) host.cpus = probe_cpus();
  return host;
}

// Nothing starts here, and the other nodes of the run wait for this one.
void tell_others(const LaunchOptions& options, const Environment& environment, const Error& error) {
  if (!asks_for_several_nodes(options) || !options.dry_run.value.empty()) return;
  try {
    tell_first_node(*find_members(options, probe_host()), options, environment, error);
  } catch (const Error&) {  // NOLINT(bugprone-empty-catch): this node does not know where the others are
  }
}

int check_and_run(LaunchOptions options, const Environment& environment,
                  const std::optional<Allocation>& allocation, const std::vector<std::string>& words) {
  check_umask();
  if (needs_current_folder(options)) current_folder();
  const bool temporary = options.log_dir.value.empty();
  if (temporary) options.log_dir.value = temporary_folder(environment);
  check_metrics_file(options);
  const std::optional<job::ParsedJob> job = read_job(options);
  const std::optional<EmbeddedRuntime> embedded = runtime_of(job);
  const Program program = find_program(requested_program(options), environment);
  const std::map<int, Program> wrapped = wrap_programs(options, program, environment);
  const HostFacts host = probe(options);
  note_flags_of_several_nodes(options);
  if (options.interactive.value && options.console.origin != Origin::fallback)
    options.notes.push_back(
        fmt::format("{} has no effect with {}; fleetrun logs shows the output of the ranks",
                    options.console.source, options.interactive.source));
  const std::optional<Membership> members = find_members(options, host);
  if (members) find_log_folder(options, *members, allocation);
  const ClusterSpec cluster = resolve_cluster(options, host, embedded, environment, members);
  const bool evaluates = !options.eval.value.empty();
  if (!evaluates) check_strategy(job, cluster, !members, environment);  // a strategy is for steps
  const std::vector<std::string> warnings = preflight({options, environment, embedded, cluster});
  RunPlan plan = {options, environment, program, embedded,
                  wrapped, cluster,     warnings};  // refers to them: log_dir may change below
  plan.quiet = !options.tune.value.empty() || evaluates;
  plan.members = members;
  plan.saves_when_stopped = !job || job->spec.checkpoint.dir.has_value();
  if (job && !plan.quiet)
    plan.stop = plan_stop(job->spec.checkpoint, {::isatty(STDERR_FILENO) == 1, !members});
  if (!members || starts_others(options, allocation))
    set_command(program_invocation_name, words, options.arguments.size(), plan.stop);
  if (members) plan.terms = find_terms(options, cluster, job);
  if (!options.dry_run.value.empty()) {
    for (const std::string& note : options.notes) log_line("fleetrun", note);
    print_answer(dry_run(plan));
    return 0;
  }
  const std::unique_ptr<OtherNodes> others = start_others(options, environment, allocation, words);
  if (others) {
    plan.starter_news = others->news_fd();
    plan.order_file = others->order_file();
  }
  if (options.preflight.value)
    if (const int code = examine_before(plan, host, job); code != 0) return code;
  if (temporary) options.log_dir.value = make_temporary_folder(options.log_dir.value);
  const int code = run_under_guard(plan, others.get());
  if (temporary && code == 0) try_to_remove(options.log_dir.value);
  return code;
}

}  // namespace

int launch(const LaunchOptions& options, const Environment& environment,
           const std::optional<Allocation>& allocation, const std::vector<std::string>& words) {
  if (stays_out(options, allocation)) return 0;
  check_can_start(options, allocation);
  try {
    return check_and_run(options, environment, allocation, words);
  } catch (const Error& error) {
    tell_others(options, environment, error);
    throw;
  }
}

int examine(LaunchOptions options, const Environment& environment,
            const std::optional<Allocation>& allocation, const std::vector<std::string>& words,
            DoctorOutput output) {
  if (stays_out(options, allocation)) return 0;
  check_can_start(options, allocation);
  if (options.log_dir.value.empty()) options.log_dir.value = environment.get_or("TMPDIR", "/tmp");
  std::string problem;
  const std::optional<job::ParsedJob> job = try_to_read_job(options, environment, problem);
  const std::optional<EmbeddedRuntime> embedded = runtime_of(job);
  const HostFacts host = probe(options);
  const std::optional<Membership> members = find_members(options, host);
  if (members) find_log_folder(options, *members, allocation);
  const ClusterSpec cluster = resolve_cluster(options, host, embedded, environment, members);
  ExaminedRun run = examined_run({options, environment, embedded, cluster}, members, job);
  run.job_problem = problem;
  if (problem.empty()) run.terms = examined_terms(options, cluster, job);
  const std::unique_ptr<OtherNodes> others = start_others(options, environment, allocation, words);
  const int code = run_doctor({.options = options,
                               .environment = environment,
                               .cluster = cluster,
                               .members = members,
                               .host = host.name,
                               .run = run,
                               .join_timeout = doctors_patience(options),
                               .output = output,
                               .starter_news = others ? others->news_fd() : -1});
  if (others) others->run_has_ended();
  return code;
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
                        .quiet = true};
  return run_under_guard(plan);
}

}  // namespace fleetrun::launch
