#include "launch/plan/cluster.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error/error.h"
#include "base/text/plural.h"
#include "launch/plan/gpu_mapping.h"

namespace fleetrun::launch {
namespace {

using job::DeviceChoice;
constexpr const char* kTorchrunMaster = "127.0.0.1";  // its default for --master_addr
constexpr const char* kCpuHint = "--device=cpu runs on the CPU";

Error usage(const std::string& message, const std::string& hint = "") {
  return Error(ErrorKind::usage, message, hint);
}

// An address of this host, or its name, whole or up to the first dot.
bool is_local(const std::string& address, const HostFacts& host) {
  const bool is_name = address == host.name || (!address.empty() && host.name.starts_with(address + "."));
  return address == "localhost" || address.starts_with("127.") || is_name ||
         std::find(host.addresses.begin(), host.addresses.end(), address) != host.addresses.end();
}

void check_local(const std::string& address, const std::string& source, const HostFacts& host) {
  if (!is_local(address, host))
    throw usage(
        fmt::format("{} names {}, which is not an address of this host ({})", source, address,
                    fmt::join(host.addresses, ", ")),
        "a run over several nodes lists all of them in --ips, or has --nnodes and --master (docs/many-hosts.md)");
}

std::string resolve_host(const LaunchOptions& options, const HostFacts& host) {
  const std::string source = options.ips.source.empty() ? "--ips" : options.ips.source;
  check_local(options.ips.value, source, host);
  if (!options.host.value) return options.ips.value;
  check_local(*options.host.value, options.host.source, host);
  return *options.host.value;
}

// The usual word for no GPU at all; CUDA's own is any number that is not one of a GPU.
bool hides_gpus(const Environment& environment) { return environment.get("CUDA_VISIBLE_DEVICES") == "-1"; }

DeviceKind without_gpus(const LaunchOptions& options, const char* why, bool asked) {
  if (asked) {
    const std::string who = options.device.source.empty() ? "the job's device" : options.device.source;
    throw usage(fmt::format("{} is cuda, but {}", who, why), kCpuHint);
  }
  if (options.gpus.value)
    throw usage(fmt::format("{} is {}, but {}", options.gpus.source, *options.gpus.value, why),
                "with --device=cpu the ids are CPU worker slots");
  return DeviceKind::cpu;
}

DeviceKind resolve_cuda(const HostFacts& host, bool needs_plugin) {
  if (needs_plugin && !host.cuda_plugin)
    throw usage(
        fmt::format("this machine has {}, but this installation has no CUDA plug-in (libfleetrun_cuda.so)",
                    plural(host.gpus, "CUDA device")),
        kCpuHint);
  return DeviceKind::cuda;
}

DeviceKind resolve_device(const LaunchOptions& options, const HostFacts& host, const Environment& environment,
                          const std::optional<EmbeddedRuntime>& embedded) {
  const bool by_flag = options.device.origin != Origin::fallback;
  const auto& workers = options.nproc_per_node.value;
  if (!by_flag && workers && workers->of == WorkerCount::Of::cores) return DeviceKind::cpu;
  const DeviceChoice of_job = embedded ? embedded->device : DeviceChoice::automatic;
  const DeviceChoice choice = by_flag ? options.device.value : of_job;
  if (choice == DeviceChoice::cpu) return DeviceKind::cpu;
  const bool asked = choice == DeviceChoice::cuda;
  if (host.gpus == 0) return without_gpus(options, "this machine has no CUDA device", asked);
  if (hides_gpus(environment)) return without_gpus(options, "CUDA_VISIBLE_DEVICES is -1", asked);
  return resolve_cuda(host, embedded.has_value());
}

// The slots that --hosts gives to this node, which is all of the hosts or one of several. nullopt: it gives none.
std::optional<int> count_slots(const LaunchOptions& options, const HostFacts& host,
                               const std::optional<Membership>& members) {
  std::optional<int> slots;
  if (!options.hosts.value) return slots;
  const std::vector<HostSlots>& hosts = options.hosts.value->hosts;
  if (members && members->node_rank && hosts.size() == members->names.size())
    return hosts[static_cast<std::size_t>(*members->node_rank)].slots;
  for (const HostSlots& one : hosts) {
    check_local(one.host, options.hosts.source, host);
    if (one.slots) slots = slots.value_or(0) + *one.slots;
  }
  return slots;
}

// mpirun and horovodrun count the workers of all hosts: "-np 8 -H a:4,b:4". For -np a host without slots has one, as there.
bool counts_all_slots(const LaunchOptions& options, int workers) {
  const int usual = options.nproc_per_node.source == "--np" ? 1 : 0;
  int all = 0;
  for (const HostSlots& one : options.hosts.value->hosts) all += one.slots.value_or(usual);
  return options.hosts.value->hosts.size() > 1 && workers == all;
}

std::optional<int> resolve_slots(const LaunchOptions& options, const HostFacts& host,
                                 const std::optional<Membership>& members) {
  const std::optional<int> slots = count_slots(options, host, members);
  const auto& workers = options.nproc_per_node.value;
  const bool counted = workers && options.nproc_per_node.origin != Origin::fallback;
  const bool is_number = counted && workers->of == WorkerCount::Of::number;
  if (options.hosts.value && is_number && counts_all_slots(options, workers->number))
    return slots.value_or(1);
  if (slots && is_number && workers->number > *slots)
    throw usage(fmt::format("{} gives {} slots, {} asks for {} workers", options.hosts.source, *slots,
                            options.nproc_per_node.source, workers->number));
  return counted ? std::nullopt : slots;
}

// How many workers the user asked for; nothing: as many as there are devices.
std::optional<int> resolve_workers(const LaunchOptions& options, const HostFacts& host, DeviceKind device,
                                   const std::optional<Membership>& members) {
  if (const auto slots = resolve_slots(options, host, members)) return slots;
  const auto& workers = options.nproc_per_node.value;
  if (!workers) return std::nullopt;
  switch (workers->of) {
    case WorkerCount::Of::number:
      return workers->number;
    case WorkerCount::Of::cores:
      return host.cores;
    case WorkerCount::Of::gpus:
      if (device == DeviceKind::cuda) return std::nullopt;
      throw usage(fmt::format("{} is gpu, but {}", options.nproc_per_node.source,
                              host.gpus == 0 ? "this machine has no CUDA device" : "the run is on the CPU"),
                  "--nproc_per_node=cpu starts a worker per core");
    case WorkerCount::Of::automatic:
      break;
  }
  return device == DeviceKind::cuda || options.gpus.value ? std::nullopt : std::optional(host.cores);
}

DeviceFlags written_flags(const LaunchOptions& options) {
  DeviceFlags written;
  if (!options.gpus.source.empty()) written.gpus = options.gpus.source;
  if (!options.nproc_per_node.source.empty()) written.workers = options.nproc_per_node.source;
  return written;
}

// As torchrun has it: a worker's GPU is the one of its local rank, also where workers are fewer or more than GPUs.
std::vector<std::vector<int>> one_gpu_each(int gpus, int workers) {
  std::vector<std::vector<int>> devices;
  devices.reserve(static_cast<std::size_t>(workers));
  for (int i = 0; i < workers; ++i) devices.push_back({i % gpus});
  return devices;
}

void place_on_gpus(ClusterSpec& cluster, const LaunchOptions& options, const HostFacts& host,
                   const Environment& environment, const std::optional<Membership>& members) {
  const std::optional<int> workers = resolve_workers(options, host, cluster.device, members);
  const bool as_torchrun = options.called_as == CalledAs::torchrun;
  GpuMapping mapping = map_gpus({.gpus = options.gpus.value,
                                 .visible = environment.get("CUDA_VISIBLE_DEVICES"),
                                 .present = host.gpus,
                                 .workers = as_torchrun ? std::nullopt : workers,
                                 .written = written_flags(options)});
  if (as_torchrun && workers)
    mapping.of_worker = one_gpu_each(static_cast<int>(mapping.visible.size()), *workers);
  cluster.own_gpus_only = options.virtual_local_rank.value;
  cluster.device_ids_given = true;
  cluster.visible_gpus = std::move(mapping.visible);
  cluster.device_ids = std::move(mapping.of_worker);
  cluster.note = std::move(mapping.note);
}

void place_on_cpu(ClusterSpec& cluster, const LaunchOptions& options, const HostFacts& host,
                  const std::optional<Membership>& members) {
  cluster.hide_gpus = host.gpus > 0;
  cluster.device_ids_given = options.gpus.value.has_value();
  const std::optional<int> workers = resolve_workers(options, host, cluster.device, members);
  const DeviceFlags written = written_flags(options);
  const int slots = options.gpus.value ? count_cpu_slots(*options.gpus.value, written) : workers.value_or(1);
  cluster.device_ids = deal_out(slots, workers.value_or(slots), written);
}

// Of another node. Until it joins it is taken for one like this, unless the list of hosts gives its slots.
std::vector<std::vector<int>> ids_of_node(std::size_t node, const LaunchOptions& options,
                                          const HostFacts& host, const Membership& members,
                                          const ClusterSpec& cluster) {
  const auto& list = options.hosts.value;
  const bool has_slots = list && list->hosts.size() == static_cast<std::size_t>(members.nodes) &&
                         resolve_slots(options, host, members);
  if (!has_slots || static_cast<int>(node) == cluster.node_rank) return cluster.device_ids;
  std::vector<std::vector<int>> ids;
  for (int slot = 0; slot < list->hosts[node].slots.value_or(1); ++slot) ids.push_back({slot});
  return ids;
}

void place_among_nodes(ClusterSpec& cluster, const Membership& members, const HostFacts& host,
                       const LaunchOptions& options) {
  cluster.host = members.host;
  cluster.node_rank = members.node_rank.value_or(0);
  for (std::size_t node = 0; node < static_cast<std::size_t>(members.nodes); ++node)
    cluster.nodes.push_back({members.names.empty() ? "" : members.names[node],
                             ids_of_node(node, options, host, members, cluster)});
  cluster.ipv6 = is_ipv6(members.meeting.host.empty() ? members.address : members.meeting.host);
  cluster.interface = interface_of(host, members.address);
}

std::optional<Endpoint> resolve_master(const LaunchOptions& options, const HostFacts& host) {
  if (options.standalone.value) return std::nullopt;
  if (options.master.value) {
    check_local(options.master.value->host, options.master.source, host);
    return options.master.value;
  }
  if (const auto& point = options.rdzv_endpoint.value) {
    check_local(point->host, options.rdzv_endpoint.source, host);
    return Endpoint{point->host, point->port};
  }
  if (!options.master_addr.value && !options.master_port.value) return std::nullopt;
  const std::string address = options.master_addr.value.value_or(kTorchrunMaster);
  check_local(address, options.master_addr.source, host);
  return Endpoint{address, options.master_port.value.value_or(0)};
}

// The ranks get the ports from --start_port on.
void check_master_port(const LaunchOptions& options, const ClusterSpec& cluster) {
  if (!cluster.start_port || !cluster.master) return;
  const int rank = cluster.master->port - *cluster.start_port;
  if (rank >= 0 && rank < cluster.local_size())
    throw usage(fmt::format("the master's port is {}, which {}={} gives to rank {}", cluster.master->port,
                            options.start_port.source, *cluster.start_port, rank),
                "--master or --start_port chooses another port");
}

int count_ranks(const std::vector<NodeSpec>& nodes, std::size_t first_nodes) {
  int ranks = 0;
  for (std::size_t node = 0; node < first_nodes; ++node) ranks += nodes[node].ranks();
  return ranks;
}

void check_named_rank(int rank, const std::string& source, const ClusterSpec& cluster) {
  if (rank >= cluster.world_size())
    throw usage(
        fmt::format("{} names rank {}, the run has {}", source, rank, plural(cluster.world_size(), "rank")));
}

// A fleetrun that another one has started has no terminal.
void check_interactive_rank(const LaunchOptions& options, const ClusterSpec& cluster) {
  const int rank = *options.interactive.value, first = cluster.first_rank();
  check_named_rank(rank, options.interactive.source, cluster);
  if (options.given_key && rank >= first && rank < first + cluster.local_size())
    throw usage(fmt::format("{} names rank {}, which runs on {}, where there is no terminal",
                            options.interactive.source, rank, cluster.host),
                "choose a rank of the node on which you start fleetrun");
}

}  // namespace

void check_named_ranks(const LaunchOptions& options, const ClusterSpec& cluster) {
  for (const DebugRank& debug : options.debug_rank.value)
    check_named_rank(debug.rank, options.debug_rank.source, cluster);
  for (const RankVariable& variable : options.env.value)
    if (variable.rank) check_named_rank(*variable.rank, options.env.source, cluster);
  if (options.interactive.value) check_interactive_rank(options, cluster);
}

int ClusterSpec::first_rank() const {
  return nodes.empty() ? 0 : count_ranks(nodes, static_cast<std::size_t>(node_rank));
}

int ClusterSpec::world_size() const {
  return nodes.empty() ? local_size() : count_ranks(nodes, nodes.size());
}

ClusterSpec resolve_cluster(const LaunchOptions& options, const HostFacts& host,
                            const std::optional<EmbeddedRuntime>& embedded, const Environment& environment,
                            const std::optional<Membership>& members) {
  ClusterSpec cluster;
  if (!members && options.node_rank.value.value_or(0) > 0)
    throw usage(
        fmt::format("{} is {}, but there is one node", options.node_rank.source, *options.node_rank.value),
        "--nnodes or --ips says how many there are");
  if (!members) cluster.host = resolve_host(options, host);
  cluster.ipv6 = is_ipv6(cluster.host);
  cluster.cores = host.cores;
  cluster.device = resolve_device(options, host, environment, embedded);
  if (cluster.device == DeviceKind::cuda)
    place_on_gpus(cluster, options, host, environment, members);
  else
    place_on_cpu(cluster, options, host, members);
  cluster.start_port = options.start_port.value;
  if (members)
    place_among_nodes(cluster, *members, host, options);
  else
    cluster.master = resolve_master(options, host);
  check_master_port(options, cluster);
  cluster.hold_ports = !options.no_port_hold.value;
  if (options.bind.value == Binding::cores) cluster.cpus = share_cpus(host.cpus, cluster.local_size());
  // A fixed number of other nodes may have other numbers of ranks, which are known once all have joined.
  if (!members || is_elastic(options)) check_named_ranks(options, cluster);
  cluster.console = members ? plan_console(options, {cluster.first_rank(), cluster.local_size(), {}})
                            : plan_console(options, cluster.local_size());
  return cluster;
}

}  // namespace fleetrun::launch
