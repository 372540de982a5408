#include "launch/run/prepare_attempt.h"

#include <unistd.h>

#include <filesystem>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "launch/host/limits.h"
#include "launch/logs/log_names.h"
#include "launch/plan/backup_environment.h"

namespace fleetrun::launch {
namespace {

std::string absolute(const RunPlan& plan, const std::string& folder) {
  return (std::filesystem::path(plan.folder) / folder).lexically_normal();
}

EmbeddedPlan plan_embedded(const RunPlan& plan, const std::string& logs, const RuntimeSupport& support) {
  EmbeddedPlan embedded = support.plan(*plan.embedded);
  const auto absolute_or_none = [&plan](const std::string& folder) {
    return folder.empty() ? folder : absolute(plan, folder);
  };
  if (plan.stop.saves_in_logs) embedded.stop_dir = fmt::format("{}/{}", logs, kStopFolder);
  embedded.dump_dir = absolute_or_none(plan.options.dump_program.value);
  embedded.passes_dir = absolute_or_none(plan.options.dump_passes.value);
  return embedded;
}

// In the log of an interactive rank, which stays empty otherwise.
void say_where_output_is(const UniqueFd& log) {
  constexpr std::string_view kLine =
      "fleetrun: the output of this rank went to the terminal (--interactive)\n";
  [[maybe_unused]] const ssize_t written = ::write(log.get(), kLine.data(), kLine.size());
}

}  // namespace

std::vector<WorkerSpec> plan_attempt(const RunPlan& plan, const AttemptId& id, const Endpoints& endpoints,
                                     const std::string& logs, const RuntimeSupport& support) {
  std::optional<EmbeddedPlan> embedded;
  if (plan.embedded) embedded = plan_embedded(plan, logs, support);
  return plan_workers({.cluster = plan.cluster,
                       .endpoints = endpoints,
                       .program = plan.program,
                       .wrapped = plan.wrapped,
                       .options = plan.options,
                       .environment = plan.environment,
                       .log_dir = plan.options.log_dir.value,
                       .absolute_log_dir = logs,
                       .run_id = id.run_id,
                       .attempt = id.number,
                       .restarts = id.restarts,
                       .embedded = std::move(embedded)});
}

Attempt prepare_attempt(const RunPlan& plan, const AttemptId& id, HeldPorts ports, const LogFolder& logs,
                        const RuntimeSupport& support) {
  Attempt attempt = {.ports = std::move(ports), .workers = {}, .logs = {}, .error_logs = {}};
  logs.write_endpoints(attempt.ports.endpoints.ranks);
  attempt.workers = plan_attempt(plan, id, attempt.ports.endpoints, logs.absolute(), support);
  check_argument_sizes(attempt.workers.front().argv, attempt.workers.front().environment);
  for (int i = 0; i < plan.cluster.local_size(); ++i) {
    const WorkerSpec& worker = attempt.workers[static_cast<std::size_t>(i)];
    attempt.logs.push_back(logs.open_worker_log(i));
    if (worker.rank == plan.options.interactive.value) say_where_output_is(attempt.logs.back());
    attempt.error_logs.push_back(worker.error_log_path.empty() ? UniqueFd() : logs.open_error_log(i));
    write_backup_environment(worker.whole_environment(), logs);
  }
  return attempt;
}

}  // namespace fleetrun::launch
