#include "launch/plan/preflight.h"

#include <chrono>
#include <map>

#include "launch/host/gpu_facts.h"
#include "launch/host/nccl_lint.h"
#include "launch/plan/program.h"

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

}  // namespace

std::vector<std::string> preflight(const PreflightRequest& request) {
  std::vector<std::string> warnings;
  if (request.options.insecure.value && request.cluster.node_count() > 1)
    warnings.emplace_back(
        "--insecure: everybody who reaches the port of the first node can start programs on the others");
  if (request.cluster.ipv6 && may_use_paddle(request.options))
    warnings.emplace_back(
        "PaddlePaddle splits PADDLE_TRAINER_ENDPOINTS at ':': its programs need IPv4 addresses of the nodes");
  if (const auto variables = nccl_variables(request); !variables.empty())
    for (std::string& warning : lint_nccl(variables, probe_network(), request.cluster.node_count()))
      warnings.push_back(std::move(warning));
  if (request.cluster.device == DeviceKind::cuda)
    if (const auto gpus = probe_gpus(kNvmlLibrary, kDriverTime))
      for (std::string& warning : lint_gpus(*gpus, request.cluster.visible_gpus))
        warnings.push_back(std::move(warning));
  return warnings;
}

}  // namespace fleetrun::launch
