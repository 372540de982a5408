#include "launch/plan/warn_before_start.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <utility>

#include "launch/host/gpu_facts.h"
#include "launch/host/nccl_lint.h"
#include "launch/plan/env_dialects.h"
#include "launch/plan/membership.h"
#include "launch/plan/program.h"
#include "launch/plan/world_lists.h"
#include "launch/process/run_input.h"

namespace fleetrun::launch {
namespace {

constexpr auto kDriverTime = std::chrono::seconds(5);  // one that has to wake up takes two

// As the workers get them: --nccl wins over the job's env, which wins over the environment.
std::map<std::string, std::string> nccl_variables(const StartRequest& request) {
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

// A variable of --env or the job's env.
struct ChosenVariable {
  std::string name, value;
  std::string words;        // that name it
  std::optional<int> rank;  // that gets it; none: all
};

std::vector<ChosenVariable> chosen_variables(const StartRequest& request) {
  std::map<std::string, ChosenVariable> chosen;
  if (request.embedded)
    for (const auto& [name, value] : request.embedded->environment)
      chosen[name] = {name, value, "env." + name + " of the job file", {}};
  for (const RankVariable& variable : request.options.env.value)
    if (const auto equals = variable.setting.find('='); equals != std::string::npos) {
      const std::string name = variable.setting.substr(0, equals);
      const std::string prefix = variable.rank ? std::to_string(*variable.rank) + ":" : "";
      chosen[prefix + name] = {name, variable.setting.substr(equals + 1), "--env " + prefix + name,
                               variable.rank};
    }
  std::vector<ChosenVariable> list;
  list.reserve(chosen.size());
  for (auto& [key, variable] : chosen) list.push_back(std::move(variable));
  return list;
}

// As a rank of this node gets the chosen variables.
Environment as_worker_gets(Environment chosen, const ClusterSpec& cluster, int local_rank) {
  const Endpoints nowhere = {.ranks = std::vector<Endpoint>(static_cast<std::size_t>(cluster.world_size())),
                             .master = {}};
  const int rank = cluster.first_rank() + local_rank;
  write_paddle_environment(cluster, nowhere, rank, {}, chosen);
  write_world_lists(list_world(cluster, nowhere), "", chosen);
  write_torch_environment(cluster, nowhere, rank, {}, chosen);
  return chosen;
}

bool has_effect(const ChosenVariable& variable, const ClusterSpec& cluster) {
  const auto reaches = [&](int local_rank) {
    Environment chosen;
    chosen.set(variable.name, variable.value);
    return as_worker_gets(chosen, cluster, local_rank).get(variable.name) == variable.value;
  };
  const int last = cluster.local_size() - 1;
  if (variable.rank) return reaches(std::clamp(*variable.rank - cluster.first_rank(), 0, last));
  return reaches(0) && reaches(last);
}

void warn_of_overruled_variables(const StartRequest& request, std::vector<std::string>& warnings) {
  for (const ChosenVariable& variable : chosen_variables(request))
    if (!has_effect(variable, request.cluster))
      warnings.push_back(variable.words + " has no effect: fleetrun sets this variable itself");
}

}  // namespace

std::vector<std::string> lint_nccl_variables(const StartRequest& request) {
  const auto variables = nccl_variables(request);
  if (variables.empty()) return {};
  return lint_nccl(variables, probe_network(), request.cluster.node_count());
}

std::vector<std::string> warn_before_start(const StartRequest& request) {
  std::vector<std::string> warnings;
  warn_of_overruled_variables(request, warnings);
  if (request.options.insecure.value && request.cluster.node_count() > 1)
    warnings.emplace_back(
        "--insecure: everybody who reaches the port of the first node can start programs on the others");
  if (request.cluster.ipv6 && may_use_paddle(request.options))
    warnings.emplace_back(
        "PaddlePaddle splits PADDLE_TRAINER_ENDPOINTS at ':': its programs need IPv4 addresses of the nodes");
  if (!request.embedded && may_start_again(request.options) && bytes_in_stream() > 0)
    warnings.emplace_back(
        "the ranks read nothing from the pipe on standard input, because --max_restart may start them again, "
        "and what was read from a pipe is gone; each attempt reads a file (< FILE) from its beginning");
  for (std::string& warning : lint_nccl_variables(request)) warnings.push_back(std::move(warning));
  if (request.cluster.device == DeviceKind::cuda)
    if (const auto gpus = probe_gpus(kNvmlLibrary, kDriverTime))
      for (std::string& warning : lint_gpus(*gpus, request.cluster.visible_gpus))
        warnings.push_back(std::move(warning));
  return warnings;
}

}  // namespace fleetrun::launch
