#include "launch/examine.h"

#include <memory>

#include "base/error/error.h"
#include "base/error/exit_codes.h"
#include "launch/host/surroundings.h"
#include "launch/plan/program.h"
#include "launch/plan/warn_before_start.h"
#include "launch/prepare.h"
#include "launch/run/join_nodes.h"
#include "launch/schedulers/settle_nodes.h"

namespace fleetrun::launch {
namespace {

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

ExaminedRun examined_run(const StartRequest& request, const std::optional<Membership>& members,
                         const std::optional<job::ParsedJob>& job) {
  ExaminedRun run;
  if (members) run.address = members->address;
  run.folders = {{"--log_dir", request.options.log_dir.value}};
  run.nccl = lint_nccl_variables(request);
  add_ports(request.cluster, !members, run);
  if (!job) return run;
  run.chooses_ports = true;
  run.folders.emplace_back("output.dir", job->spec.output.dir);
  if (job->spec.checkpoint.dir) run.folders.emplace_back("checkpoint.dir", *job->spec.checkpoint.dir);
  run.data_lists = data_lists_of(job->spec);
  return run;
}

Clock::duration doctors_patience(const LaunchOptions& options) {
  if (options.join_timeout.origin != Origin::fallback) return options.join_timeout.value;
  return options.given_key ? kStartPatience : kDoctorsPatience;
}

}  // namespace

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
                     .starter_news = plan.starter_news,
                     .possible_successors = possible_successors(plan.options)});
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
  if (const int signal = wait_for_names(options, environment, doctors_patience(options)); signal != 0)
    return kSignalExitCode + signal;
  const std::optional<Membership> members = find_members(options, host);
  if (members) use_log_folder_of_node(options, *members, allocation);
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

}  // namespace fleetrun::launch
