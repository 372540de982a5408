#include "launch/doctor/device_facts.h"

#include <fmt/format.h>

#include "launch/host/gpu_facts.h"
#include "launch/host/host_facts.h"
#include "launch/host/nccl_lint.h"

namespace fleetrun::launch {
namespace {

constexpr auto kDriverAnswer = std::chrono::seconds(5);  // one that has to wake up takes two
constexpr double kGiB = 1 << 30;

std::string describe_gpu(const GpuFact& gpu) {
  return fmt::format("{}, {:.0f} of {:.0f} GiB used", gpu.name, static_cast<double>(gpu.memory_used) / kGiB,
                     static_cast<double>(gpu.memory_total) / kGiB);
}

}  // namespace

void read_device_facts(const ClusterSpec& cluster, NodeFacts& facts) {
  const NetworkFacts network = probe_network();
  facts.infiniband_ports = network.infiniband_ports;
  facts.infiniband_active = network.infiniband_active;
  const int files = probe_host().gpus;
  if (files == 0 || cluster.device != DeviceKind::cuda) return;
  const auto gpus = probe_gpus(kNvmlLibrary, kDriverAnswer);
  if (!gpus) {
    facts.gpu_problems.push_back(fmt::format("{} GPUs, and the driver does not answer within {:g} s", files,
                                             in_seconds(kDriverAnswer)));
    return;
  }
  for (const GpuFact& gpu : *gpus) facts.gpus.push_back(describe_gpu(gpu));
  facts.gpu_problems = lint_gpus(*gpus, cluster.visible_gpus);
  for (std::string& problem : lint_gpu_health(*gpus, cluster.visible_gpus))
    facts.gpu_problems.push_back(std::move(problem));
}

}  // namespace fleetrun::launch
