#include "launch/plan/preflight.h"

#include <chrono>
#include <map>
#include <utility>

#include "launch/host/gpu_facts.h"
#include "launch/host/nccl_lint.h"
#include "launch/plan/env_dialects.h"
#include "launch/plan/program.h"
#include "launch/plan/world_lists.h"

namespace fleetrun::launch {
namespace {

constexpr auto kDriverTime = std::chrono::seconds(5);  // one that has to wake up takes two

// As the workers get them: --nccl wins over the job's env, which wins over the environment.
std::map<std::string, std::string> nccl_variables(const PreflightRequest& request) {
  std::map<std::string, std::string> variables;
  const auto add = [&](const std::string& name, const std::string& value) {
    if (name.starts_with("NCCL_")) variables[name] = value;
  };
  for (const auto& [name, value] : request.environment.variables()) add(name, value);
  if (request.embedded)
    for (const auto& [name, value] : request.embedded->environment) add(name, value);
  for (const std::string& setting : request.options.nccl.value) {
    const auto equals = setting.find('=');
    add(setting.substr(0, equals), setting.substr(equals + 1));
  }
  return variables;
}

// Nobody looks into a script: any that Python runs may import it.
bool may_use_paddle(const LaunchOptions& options) {
  return options.called_as != CalledAs::torchrun &&
         kind_of(requested_program(options)) == ProgramKind::python;
}

// --env and the job's env, each with the words that name it.
std::map<std::string, std::pair<std::string, std::string>> chosen_variables(const PreflightRequest& request) {
  std::map<std::string, std::pair<std::string, std::string>> chosen;
  if (request.embedded)
    for (const auto& [name, value] : request.embedded->environment)
      chosen[name] = {"env." + name + " of the job file", value};
  for (const std::string& setting : request.options.env.value)
    if (const auto equals = setting.find('='); equals != std::string::npos) {
      const std::string name = setting.substr(0, equals);
      chosen[name] = {"--env " + name, setting.substr(equals + 1)};
    }
  return chosen;
}

// As the first or the last rank of this node gets the chosen variables, which differ where ranks do.
Environment as_worker_gets(Environment chosen, const ClusterSpec& cluster, int local_rank) {
  const Endpoints nowhere = {.ranks = std::vector<Endpoint>(static_cast<std::size_t>(cluster.world_size())),
                             .master = {}};
  const int rank = cluster.first_rank() + local_rank;
  write_paddle_environment(cluster, nowhere, rank, {}, chosen);
  write_world_lists(list_world(cluster, nowhere), "", chosen);
  write_torch_environment(cluster, nowhere, rank, {}, chosen);
  return chosen;
}

void warn_of_overruled_variables(const PreflightRequest& request, std::vector<std::string>& warnings) {
  const auto chosen = chosen_variables(request);
  if (chosen.empty()) return;
  Environment environment;
  for (const auto& [name, source] : chosen) environment.set(name, source.second);
  const Environment first = as_worker_gets(environment, request.cluster, 0);
  const Environment last = as_worker_gets(environment, request.cluster, request.cluster.local_size() - 1);
  for (const auto& [name, source] : chosen)
    if (first.get(name) != source.second || last.get(name) != source.second)
      warnings.push_back(source.first + " has no effect: fleetrun sets this variable itself");
}

}  // namespace

std::vector<std::string> lint_nccl_variables(const PreflightRequest& request) {
  const auto variables = nccl_variables(request);
  if (variables.empty()) return {};
  return lint_nccl(variables, probe_network(), request.cluster.node_count());
}

std::vector<std::string> preflight(const PreflightRequest& request) {
  std::vector<std::string> warnings;
  warn_of_overruled_variables(request, warnings);
  if (request.options.insecure.value && request.cluster.node_count() > 1)
    warnings.emplace_back(
        "--insecure: everybody who reaches the port of the first node can start programs on the others");
  if (request.cluster.ipv6 && may_use_paddle(request.options))
    warnings.emplace_back(
        "PaddlePaddle splits PADDLE_TRAINER_ENDPOINTS at ':': its programs need IPv4 addresses of the nodes");
  for (std::string& warning : lint_nccl_variables(request)) warnings.push_back(std::move(warning));
  if (request.cluster.device == DeviceKind::cuda)
    if (const auto gpus = probe_gpus(kNvmlLibrary, kDriverTime))
      for (std::string& warning : lint_gpus(*gpus, request.cluster.visible_gpus))
        warnings.push_back(std::move(warning));
  return warnings;
}

}  // namespace fleetrun::launch
