#include "launch/run/prepare_attempt.h"

#include <filesystem>

#include "launch/host/limits.h"
#include "launch/plan/backup_environment.h"

namespace fleetrun::launch {
namespace {

EmbeddedPlan plan_embedded(const NodeRun& run, const RuntimeSupport& support) {
  EmbeddedPlan plan = support.plan(run.job->spec);
  const auto absolute = [](const std::string& folder) {
    return folder.empty() ? folder : std::filesystem::absolute(folder).string();
  };
  plan.dump_dir = absolute(run.options.dump_program.value);
  plan.passes_dir = absolute(run.options.dump_passes.value);
  return plan;
}

}  // namespace

Attempts::Attempts(const NodeRun& run, const LogFolder& logs, const std::string& run_id,
                   RuntimeSupport* support)
    : run_(run), logs_(logs), run_id_(run_id), support_(support) {}

Attempt Attempts::prepare(int attempt) {
  if (attempt > 0 && support_ != nullptr) support_->begin_attempt(attempt);
  ports_ = {};  // before new ones: a port that the user named is to be held again
  ports_ = hold_ports(run_.cluster);
  logs_.write_endpoints(ports_.endpoints.ranks);
  Attempt made = {.workers = plan_attempt(run_, attempt, ports_.endpoints, run_id_, support_),
                  .logs = {},
                  .error_logs = {}};
  environment_ = made.workers.front().environment;
  check_argument_sizes(made.workers.front().argv, environment_);
  for (int i = 0; i < run_.cluster.local_size(); ++i) {
    const WorkerSpec& worker = made.workers[static_cast<std::size_t>(i)];
    made.logs.push_back(logs_.open_worker_log(i));
    made.error_logs.push_back(worker.error_log_path.empty() ? UniqueFd() : logs_.open_error_log(i));
    write_backup_environment(worker.environment, logs_);
  }
  return made;
}

std::vector<WorkerSpec> plan_attempt(const NodeRun& run, int attempt, const Endpoints& endpoints,
                                     const std::string& run_id, const RuntimeSupport* support) {
  std::optional<EmbeddedPlan> embedded;
  if (support != nullptr) embedded = plan_embedded(run, *support);
  const std::string& log_dir = run.options.log_dir.value;
  return plan_workers({.cluster = run.cluster,
                       .endpoints = endpoints,
                       .program = run.program,
                       .wrapped = run.wrapped,
                       .options = run.options,
                       .environment = run.environment,
                       .log_dir = log_dir,
                       .absolute_log_dir = std::filesystem::absolute(log_dir).lexically_normal(),
                       .run_id = run_id,
                       .attempt = attempt,
                       .embedded = std::move(embedded)});
}

}  // namespace fleetrun::launch
