#include "launch/host/nccl_lint.h"

#include <ifaddrs.h>
#include <net/if.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/text/split_list.h"
#include "base/text/suggest.h"

namespace fleetrun::launch {
namespace {

constexpr std::string_view kNcclPrefix = "NCCL_";

// NVIDIA's documentation of NCCL 2.27, what its plug-ins and tests read, and NCCL_VERSION, which NVIDIA's container images set.
const std::vector<std::string>& known_variables() {
  static const std::vector<std::string> names = {"NCCL_ALGO",
                                                 "NCCL_ALLOC_P2P_NET_LL_BUFFERS",
                                                 "NCCL_BUFFSIZE",
                                                 "NCCL_CGA_CLUSTER_SIZE",
                                                 "NCCL_CHECKS_DISABLE",
                                                 "NCCL_CHECK_POINTERS",
                                                 "NCCL_COLLNET_ENABLE",
                                                 "NCCL_COLLNET_NODE_THRESHOLD",
                                                 "NCCL_COMM_BLOCKING",
                                                 "NCCL_COMM_ID",
                                                 "NCCL_COMM_SHRINK_SHARE_RESOURCES",
                                                 "NCCL_COMM_SPLIT_SHARE_RESOURCES",
                                                 "NCCL_CONF_FILE",
                                                 "NCCL_CREATE_THREAD_CONTEXT",
                                                 "NCCL_CROSS_NIC",
                                                 "NCCL_CUMEM_ENABLE",
                                                 "NCCL_CUMEM_HOST_ENABLE",
                                                 "NCCL_DEBUG",
                                                 "NCCL_DEBUG_FILE",
                                                 "NCCL_DEBUG_SUBSYS",
                                                 "NCCL_DEBUG_TIMESTAMP_FORMAT",
                                                 "NCCL_DEBUG_TIMESTAMP_LEVELS",
                                                 "NCCL_DMABUF_ENABLE",
                                                 "NCCL_GDRCOPY_ENABLE",
                                                 "NCCL_GRAPH_DUMP_FILE",
                                                 "NCCL_GRAPH_FILE",
                                                 "NCCL_GRAPH_MIXING_SUPPORT",
                                                 "NCCL_GRAPH_REGISTER",
                                                 "NCCL_HOSTID",
                                                 "NCCL_IB_ADAPTIVE_ROUTING",
                                                 "NCCL_IB_ADDR_FAMILY",
                                                 "NCCL_IB_ADDR_RANGE",
                                                 "NCCL_IB_AR_THRESHOLD",
                                                 "NCCL_IB_CUDA_SUPPORT",
                                                 "NCCL_IB_DATA_DIRECT",
                                                 "NCCL_IB_DISABLE",
                                                 "NCCL_IB_ECE_ENABLE",
                                                 "NCCL_IB_FIFO_TC",
                                                 "NCCL_IB_GID_INDEX",
                                                 "NCCL_IB_HCA",
                                                 "NCCL_IB_MERGE_NICS",
                                                 "NCCL_IB_MERGE_VFS",
                                                 "NCCL_IB_PCI_RELAXED_ORDERING",
                                                 "NCCL_IB_PKEY",
                                                 "NCCL_IB_QPS_PER_CONNECTION",
                                                 "NCCL_IB_RETRY_CNT",
                                                 "NCCL_IB_RETURN_ASYNC_EVENTS",
                                                 "NCCL_IB_ROCE_VERSION_NUM",
                                                 "NCCL_IB_SL",
                                                 "NCCL_IB_SPLIT_DATA_ON_QPS",
                                                 "NCCL_IB_TC",
                                                 "NCCL_IB_TIMEOUT",
                                                 "NCCL_IB_USE_INLINE",
                                                 "NCCL_IGNORE_CPU_AFFINITY",
                                                 "NCCL_IGNORE_DISABLED_P2P",
                                                 "NCCL_LAUNCH_MODE",
                                                 "NCCL_LAUNCH_ORDER_IMPLICIT",
                                                 "NCCL_LL128_BUFFSIZE",
                                                 "NCCL_LL128_NTHREADS",
                                                 "NCCL_LL_BUFFSIZE",
                                                 "NCCL_LOCAL_REGISTER",
                                                 "NCCL_MAX_CTAS",
                                                 "NCCL_MAX_NCHANNELS",
                                                 "NCCL_MAX_NRINGS",
                                                 "NCCL_MAX_P2P_NCHANNELS",
                                                 "NCCL_MIN_CTAS",
                                                 "NCCL_MIN_NCHANNELS",
                                                 "NCCL_MIN_NRINGS",
                                                 "NCCL_MIN_P2P_NCHANNELS",
                                                 "NCCL_MNNVL_ENABLE",
                                                 "NCCL_NCHANNELS_PER_NET_PEER",
                                                 "NCCL_NCHANNELS_PER_PEER",
                                                 "NCCL_NET",
                                                 "NCCL_NETDEVS_POLICY",
                                                 "NCCL_NET_DISABLE_INTRA",
                                                 "NCCL_NET_FORCE_FLUSH",
                                                 "NCCL_NET_GDR_C2C",
                                                 "NCCL_NET_GDR_LEVEL",
                                                 "NCCL_NET_GDR_READ",
                                                 "NCCL_NET_OVERHEAD",
                                                 "NCCL_NET_PLUGIN",
                                                 "NCCL_NET_SHARED_BUFFERS",
                                                 "NCCL_NET_SHARED_COMMS",
                                                 "NCCL_NSOCKS_PERTHREAD",
                                                 "NCCL_NTHREADS",
                                                 "NCCL_NVB_DISABLE",
                                                 "NCCL_NVLSTREE_MAX_CHUNKSIZE",
                                                 "NCCL_NVLS_CHUNKSIZE",
                                                 "NCCL_NVLS_ENABLE",
                                                 "NCCL_NVLS_NCHANNELS",
                                                 "NCCL_OOB_NET_ENABLE",
                                                 "NCCL_OOB_NET_IFNAME",
                                                 "NCCL_P2P_DIRECT_DISABLE",
                                                 "NCCL_P2P_DISABLE",
                                                 "NCCL_P2P_LEVEL",
                                                 "NCCL_P2P_LL_THRESHOLD",
                                                 "NCCL_P2P_NET_CHUNKSIZE",
                                                 "NCCL_P2P_NVL_CHUNKSIZE",
                                                 "NCCL_P2P_PCI_CHUNKSIZE",
                                                 "NCCL_P2P_PXN_LEVEL",
                                                 "NCCL_P2P_READ_ENABLE",
                                                 "NCCL_P2P_USE_CUDA_MEMCPY",
                                                 "NCCL_PROFILER_PLUGIN",
                                                 "NCCL_PROGRESS_APPENDOP_FREQ",
                                                 "NCCL_PROTO",
                                                 "NCCL_PXN_C2C",
                                                 "NCCL_PXN_DISABLE",
                                                 "NCCL_RAS_ADDR",
                                                 "NCCL_RAS_ENABLE",
                                                 "NCCL_RAS_TIMEOUT_FACTOR",
                                                 "NCCL_RINGS",
                                                 "NCCL_RUNTIME_CONNECT",
                                                 "NCCL_SET_STACK_SIZE",
                                                 "NCCL_SET_THREAD_NAME",
                                                 "NCCL_SHM_DISABLE",
                                                 "NCCL_SHM_LOCALITY",
                                                 "NCCL_SHM_USE_CUDA_MEMCPY",
                                                 "NCCL_SINGLE_PROC_MEM_REG_ENABLE",
                                                 "NCCL_SINGLE_RING_THRESHOLD",
                                                 "NCCL_SOCKET_FAMILY",
                                                 "NCCL_SOCKET_IFNAME",
                                                 "NCCL_SOCKET_NTHREADS",
                                                 "NCCL_SOCKET_RETRY_CNT",
                                                 "NCCL_SOCKET_RETRY_SLEEP_MSEC",
                                                 "NCCL_SYM_CTAS",
                                                 "NCCL_THREAD_THRESHOLDS",
                                                 "NCCL_TOPO_DUMP_FILE",
                                                 "NCCL_TOPO_FILE",
                                                 "NCCL_TREE_THRESHOLD",
                                                 "NCCL_TUNER_PLUGIN",
                                                 "NCCL_UID_STAGGER_RATE",
                                                 "NCCL_UID_STAGGER_THRESHOLD",
                                                 "NCCL_VERSION",
                                                 "NCCL_WARN_ENABLE_DEBUG_INFO",
                                                 "NCCL_WIN_ENABLE",
                                                 "NCCL_WORK_ARGS_BYTES",
                                                 "NCCL_WORK_FIFO_BYTES",
                                                 "NCCL_WORK_FIFO_DEPTH",
                                                 "NCCL_ASYNC_ERROR_HANDLING",
                                                 "NCCL_BLOCKING_WAIT",
                                                 "NCCL_DESYNC_DEBUG"};
  return names;
}

bool means_on(const std::string& value) { return !value.empty() && value != "0"; }

// How NCCL reads NCCL_SOCKET_IFNAME: prefixes, "=" for whole names, "^" for all but these.
std::vector<std::string> chosen_interfaces(const std::string& text, const std::vector<std::string>& present) {
  const bool without = text.starts_with('^');
  const std::string rest = text.substr(text.starts_with('^') || text.starts_with('=') ? 1 : 0);
  const bool whole = text.starts_with('=') || rest.starts_with('=');
  std::vector<std::string> chosen;
  for (const std::string& name : present) {
    const std::vector<std::string> items = split_list(rest.substr(rest.starts_with('=') ? 1 : 0));
    const bool matches = std::any_of(items.begin(), items.end(), [&](const std::string& item) {
      return whole ? name == item : name.starts_with(item);
    });
    if (matches != without) chosen.push_back(name);
  }
  return chosen;
}

void lint_interfaces(const std::string& value, const NetworkFacts& network, int nodes,
                     std::vector<std::string>& found) {
  const std::vector<std::string> chosen = chosen_interfaces(value, network.interfaces);
  if (chosen.empty()) {
    found.push_back(fmt::format("NCCL_SOCKET_IFNAME is {}, which no network interface of this host is ({})",
                                value, fmt::join(network.interfaces, ", ")));
    return;
  }
  const bool only_loopback = std::all_of(chosen.begin(), chosen.end(), [&](const std::string& name) {
    return std::find(network.loopbacks.begin(), network.loopbacks.end(), name) != network.loopbacks.end();
  });
  if (only_loopback && nodes > 1)
    found.push_back(
        fmt::format("NCCL_SOCKET_IFNAME is {}, the loopback interface, which reaches no other node", value));
}

void count_infiniband(const std::string& folder, NetworkFacts& facts) {
  std::error_code problem;
  for (const auto& device : std::filesystem::directory_iterator(folder, problem))
    for (const auto& port : std::filesystem::directory_iterator(device.path() / "ports", problem)) {
      std::ifstream file(port.path() / "state");
      std::string state;
      std::getline(file, state);
      ++facts.infiniband_ports;
      if (state.find("ACTIVE") != std::string::npos) ++facts.infiniband_active;
    }
}

}  // namespace

NetworkFacts probe_network(const std::string& root) {
  NetworkFacts facts;
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) == 0) {
    const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(list, &::freeifaddrs);
    std::set<std::string> names, loopbacks;
    for (const ifaddrs* one = list; one != nullptr; one = one->ifa_next) {
      names.insert(one->ifa_name);
      if ((one->ifa_flags & IFF_LOOPBACK) != 0) loopbacks.insert(one->ifa_name);
    }
    facts.interfaces.assign(names.begin(), names.end());
    facts.loopbacks.assign(loopbacks.begin(), loopbacks.end());
  }
  count_infiniband(root + "/sys/class/infiniband", facts);
  return facts;
}

std::vector<std::string> lint_nccl(const std::map<std::string, std::string>& variables,
                                   const NetworkFacts& network, int nodes) {
  std::vector<std::string> found;
  const auto& known = known_variables();
  for (const auto& [name, value] : variables) {
    if (!name.starts_with(kNcclPrefix)) continue;
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      const auto meant = closest(name, known);
      found.push_back(fmt::format("{} is not a variable that NCCL is known to read{}", name,
                                  meant ? fmt::format("; did you mean {}?", *meant) : ""));
    }
    if (name == "NCCL_IB_CUDA_SUPPORT")
      found.emplace_back(
          "NCCL_IB_CUDA_SUPPORT is obsolete since NCCL 2.4; NCCL_NET_GDR_LEVEL took its place");
    if (name == "NCCL_SOCKET_IFNAME" && !value.empty()) lint_interfaces(value, network, nodes, found);
    if (name == "NCCL_IB_DISABLE" && means_on(value) && network.infiniband_active > 0)
      found.push_back(
          fmt::format("NCCL_IB_DISABLE is {}, but this host has an active InfiniBand or RoCE port", value));
  }
  return found;
}

}  // namespace fleetrun::launch
