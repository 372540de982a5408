#include "launch/cluster.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "launch/gpu_mapping.h"

namespace fleetrun::launch {
namespace {

using job::DeviceChoice;
constexpr const char* kCpuHint = "--device=cpu runs on the CPU";

Error usage(const std::string& message, const std::string& hint = "") {
  return Error(ErrorKind::usage, message, hint);
}

bool is_local(const std::string& address, const HostFacts& host) {
  return address == "localhost" || address.starts_with("127.") ||
         std::find(host.addresses.begin(), host.addresses.end(), address) != host.addresses.end();
}

void check_local(const std::string& address, const std::string& source, const HostFacts& host) {
  if (!is_local(address, host))
    throw usage(fmt::format("{} names {}, which is no address of this host ({})", source, address,
                            fmt::join(host.addresses, ", ")),
                "runs over several nodes are not supported yet");
}

std::string resolve_host(const LaunchOptions& options, const HostFacts& host) {
  const std::string source = options.ips.source.empty() ? "--ips" : options.ips.source;
  const std::vector<std::string> nodes = split_list(options.ips.value);
  if (nodes.size() > 1)
    throw usage(
        fmt::format("{} lists {} nodes: more than one node is not supported yet", source, nodes.size()));
  check_local(nodes.front(), source, host);
  if (!options.host.value) return nodes.front();
  check_local(*options.host.value, options.host.source, host);
  return *options.host.value;
}

Device resolve_cuda(const LaunchOptions& options, const HostFacts& host, const ProgramNeeds& needs,
                    bool asked) {
  if (host.gpus == 0 && asked) {
    const std::string who = options.device.source.empty() ? "the job's device" : options.device.source;
    throw usage(fmt::format("{} is cuda, but this machine has no CUDA device", who), kCpuHint);
  }
  if (host.gpus == 0 && options.gpus.value)
    throw usage(fmt::format("{} is {}, but this machine has no CUDA device", options.gpus.source,
                            *options.gpus.value),
                "with --device=cpu the ids are CPU worker slots");
  if (host.gpus == 0) return Device::cpu;
  if (needs.embedded_runtime && !host.cuda_plugin)
    throw usage(fmt::format("this machine has {} CUDA device{}, but this installation has no CUDA plug-in "
                            "(libfleetrun_cuda.so)",
                            host.gpus, host.gpus == 1 ? "" : "s"),
                kCpuHint);
  return Device::cuda;
}

Device resolve_device(const LaunchOptions& options, const HostFacts& host, const ProgramNeeds& needs) {
  const bool by_flag = options.device.origin != Origin::fallback;
  const DeviceChoice choice = by_flag ? options.device.value : needs.device;
  if (choice == DeviceChoice::cpu) return Device::cpu;
  return resolve_cuda(options, host, needs, choice == DeviceChoice::cuda);
}

void place_on_gpus(ClusterSpec& cluster, const LaunchOptions& options, const HostFacts& host,
                   const Environment& environment) {
  GpuMapping mapping = map_gpus({.gpus = options.gpus.value,
                                 .visible = environment.get("CUDA_VISIBLE_DEVICES"),
                                 .present = host.gpus,
                                 .workers = options.nproc_per_node.value});
  cluster.device_ids_given = true;
  cluster.visible_gpus = std::move(mapping.visible);
  cluster.device_ids = std::move(mapping.of_worker);
  cluster.note = std::move(mapping.note);
}

void place_on_cpu(ClusterSpec& cluster, const LaunchOptions& options, const HostFacts& host) {
  cluster.hide_gpus = host.gpus > 0;
  cluster.device_ids_given = options.gpus.value.has_value();
  const int slots = options.gpus.value ? static_cast<int>(split_list(*options.gpus.value).size())
                                       : options.nproc_per_node.value.value_or(1);
  cluster.device_ids = deal_out(slots, options.nproc_per_node.value.value_or(slots));
}

std::optional<Endpoint> resolve_master(const LaunchOptions& options, const HostFacts& host) {
  if (options.master.value) check_local(options.master.value->host, options.master.source, host);
  return options.master.value;
}

}  // namespace

ClusterSpec resolve_cluster(const LaunchOptions& options, const HostFacts& host, const ProgramNeeds& needs,
                            const Environment& environment) {
  ClusterSpec cluster;
  cluster.host = resolve_host(options, host);
  cluster.cores = host.cores;
  cluster.device = resolve_device(options, host, needs);
  if (cluster.device == Device::cuda)
    place_on_gpus(cluster, options, host, environment);
  else
    place_on_cpu(cluster, options, host);
  cluster.start_port = options.start_port.value;
  cluster.master = resolve_master(options, host);
  cluster.hold_ports = !options.no_port_hold.value;
  if (options.bind.value == Binding::cores) cluster.cpus = share_cpus(host.cpus, cluster.local_size());
  for (const DebugRank& debug : options.debug_rank.value)
    if (debug.rank >= cluster.world_size())
      throw usage(fmt::format("{} names rank {}, the run has {} ranks", options.debug_rank.source, debug.rank,
                              cluster.world_size()));
  const std::string source = options.console.source.empty() ? "--console" : options.console.source;
  cluster.shown_ranks = options.console.value.below(cluster.local_size(), source);
  return cluster;
}

}  // namespace fleetrun::launch
