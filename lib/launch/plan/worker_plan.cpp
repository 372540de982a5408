#include "launch/plan/worker_plan.h"

#include <algorithm>
#include <functional>

#include <fmt/format.h>

#include "base/run/rank_env.h"
#include "launch/logs/log_names.h"
#include "launch/process/signals.h"

namespace fleetrun::launch {
namespace {

int threads_per_rank(const PlanRequest& request) {
  if (request.embedded && request.embedded->threads) return *request.embedded->threads;
  if (!request.cluster.cpus.empty()) return static_cast<int>(request.cluster.cpus.front().size());
  return std::max(1, request.cluster.cores / request.cluster.local_size());
}

const Program& program_of(const PlanRequest& request, int rank) {
  const auto wrapped = request.wrapped.find(rank);
  return wrapped == request.wrapped.end() ? request.program : wrapped->second;
}

std::string describe_device(const ClusterSpec& cluster, int local_rank) {
  if (cluster.device == DeviceKind::cpu) return "cpu";
  if (cluster.own_gpus_only) return "cuda:0";
  return fmt::format("cuda:{}", cluster.device_ids.at(static_cast<std::size_t>(local_rank)).front());
}

void write_embedded(const PlanRequest& request, int rank, int local_rank, WorkerSpec& worker) {
  const EmbeddedPlan& embedded = *request.embedded;
  const ClusterSpec& cluster = request.cluster;
  RankEnv rank_env = {.rank = rank,
                      .world_size = cluster.world_size(),
                      .local_rank = local_rank,
                      .local_size = cluster.local_size(),
                      .node_rank = cluster.node_rank,
                      .nodes = cluster.node_count(),
                      .attempt = request.attempt,
                      .run_id = request.run_id,
                      .store = embedded.store,
                      .key_fd = embedded.key_fd,
                      .progress_fd = -1,
                      .job_fd = embedded.job_fd,
                      .log_dir = request.absolute_log_dir,
                      .stop_dir = embedded.stop_dir,
                      .device = describe_device(cluster, local_rank),
                      .dump_dir = embedded.dump_dir,
                      .passes_dir = embedded.passes_dir,
                      .threads = threads_per_rank(request)};
  if (!embedded.progress_fds.empty())
    rank_env.progress_fd = embedded.progress_fds.at(static_cast<std::size_t>(local_rank));
  for (const int fd : {rank_env.key_fd, rank_env.progress_fd, rank_env.job_fd})
    if (fd >= 0) worker.inherited_fds.push_back(fd);
  // Executor threads each have a team of their own: one that spins while it waits takes the others' cores.
  worker.environment.set_if_absent("OMP_WAIT_POLICY", "passive");
  write_rank_env(rank_env, worker.environment);
}

// "NAME=VALUE"; a NAME alone keeps its `current` value, if it has one.
void set_variable(const std::string& setting, const Environment& current, Environment& environment) {
  const std::size_t equals = setting.find('=');
  if (equals != std::string::npos)
    environment.set(setting.substr(0, equals), setting.substr(equals + 1));
  else if (const auto value = current.get(setting))
    environment.set(setting, *value);
}

// Later ones win: the job's variables, then those of flags.
void write_chosen_variables(const PlanRequest& request, int rank, Environment& environment) {
  if (request.embedded)
    for (const auto& [name, value] : request.embedded->job_environment) environment.set(name, value);
  for (const RankVariable& variable : request.options.env.value)
    if (variable.is_for(rank)) set_variable(variable.setting, request.environment, environment);
  for (const std::string& setting : request.options.nccl.value)
    set_variable(setting, request.environment, environment);
}

// Six letters, as PaddlePaddle names its pods; the same for all workers of a node.
std::string pod_name(const std::string& run_id, int node_rank) {
  constexpr std::size_t kLetters = 6;
  std::size_t number = std::hash<std::string>()(fmt::format("{}.{}", run_id, node_rank));
  std::string name;
  for (; name.size() < kLetters; number /= 26) name += static_cast<char>('a' + number % 26);
  return name;
}

PaddleNames paddle_names(const PlanRequest& request, int rank) {
  const LaunchOptions& options = request.options;
  const bool starts = options.dry_run.value.empty();  // else nobody writes the file
  return {.log_dir = request.absolute_log_dir,
          .pod = pod_name(request.run_id, request.cluster.node_rank),
          .backup_env = starts ? fmt::format("{}/backup_env.{}.json", request.absolute_log_dir, rank) : "",
          .auto_cluster = options.auto_cluster_config.origin == Origin::fallback ? "0"
                          : options.auto_cluster_config.value                    ? "True"
                                                                                 : "False"};
}

TorchNames torch_names(const PlanRequest& request, int local_rank) {
  const LaunchOptions& options = request.options;
  TorchNames names = {.run_id = options.rdzv_id.value.value_or(request.run_id),
                      .error_file = fmt::format("{}/error.{}.json", request.absolute_log_dir, local_rank),
                      .restarts = request.restarts,
                      .max_restarts = most_restarts(options),
                      .role = options.role.value};
  if (options.signals_to_handle.value) names.signals = options.signals_to_handle.value->text;
  names.virtual_local_rank = options.virtual_local_rank.value;
  return names;
}

WorkerSpec plan_worker(const PlanRequest& request, const WorldLists& lists, int local_rank) {
  const ClusterSpec& cluster = request.cluster;
  const int rank = cluster.first_rank() + local_rank;
  WorkerSpec worker = {.rank = rank,
                       .executable = program_of(request, rank).executable,
                       .argv = program_of(request, rank).argv,
                       .environment = request.environment,
                       .log_path = fmt::format("{}/workerlog.{}", request.log_dir, local_rank),
                       .error_log_path = "",
                       .cpus = {},
                       .inherited_fds = {},
                       .left_out = {}};
  if (!cluster.cpus.empty()) worker.cpus = cluster.cpus.at(static_cast<std::size_t>(local_rank));
  if (!cluster.console.apart.empty() && cluster.console.apart.at(static_cast<std::size_t>(local_rank)))
    worker.error_log_path = worker.log_path + ".err";
  write_chosen_variables(request, rank, worker.environment);
  worker.environment.set_if_absent("OMP_NUM_THREADS", std::to_string(threads_per_rank(request)));
  write_paddle_environment(cluster, request.endpoints, rank, paddle_names(request, rank), worker.environment);
  worker.left_out = write_world_lists(lists, fmt::format("{}/{}", request.absolute_log_dir, kEndpointsName),
                                      worker.environment);
  write_torch_environment(cluster, request.endpoints, rank, torch_names(request, local_rank),
                          worker.environment);
  if (!request.embedded) {  // a Python script, or a program that may start one
    worker.environment.set_if_absent("PYTHONFAULTHANDLER", "1");  // a traceback at SIGSEGV and its kin
    worker.environment.set(kStackSignalVariable, std::to_string(kStackSignal));
  }
  if (request.embedded) write_embedded(request, rank, local_rank, worker);
  return worker;
}

}  // namespace

Environment WorkerSpec::whole_environment() const {
  Environment whole = environment;
  for (const auto& [name, value] : left_out) whole.set(name, value);
  return whole;
}

std::vector<WorkerSpec> plan_workers(const PlanRequest& request) {
  const WorldLists lists = list_world(request.cluster, request.endpoints);
  std::vector<WorkerSpec> workers;
  workers.reserve(static_cast<std::size_t>(request.cluster.local_size()));
  for (int local_rank = 0; local_rank < request.cluster.local_size(); ++local_rank)
    workers.push_back(plan_worker(request, lists, local_rank));
  return workers;
}

}  // namespace fleetrun::launch
