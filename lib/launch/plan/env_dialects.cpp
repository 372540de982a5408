#include "launch/plan/env_dialects.h"

#include <numeric>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fleetrun::launch {
namespace {

int local_rank_of(const ClusterSpec& cluster, int rank) { return rank - cluster.first_rank(); }

const std::vector<int>& devices_of(const ClusterSpec& cluster, int rank) {
  return cluster.device_ids.at(static_cast<std::size_t>(local_rank_of(cluster, rank)));
}

// CUDA_VISIBLE_DEVICES of a worker that sees its own GPUs only.
std::string describe_own_gpus(const ClusterSpec& cluster, int rank) {
  std::vector<std::string> names;
  for (const int index : devices_of(cluster, rank))
    names.push_back(cluster.visible_gpus.at(static_cast<std::size_t>(index)));
  return fmt::format("{}", fmt::join(names, ","));
}

// As the worker counts them.
std::string describe_devices(const ClusterSpec& cluster, int rank) {
  std::vector<int> ids = devices_of(cluster, rank);
  if (cluster.own_gpus_only) std::iota(ids.begin(), ids.end(), 0);
  return fmt::format("{}", fmt::join(ids, ","));
}

void write_devices(const ClusterSpec& cluster, int rank, Environment& environment) {
  const std::string ids = describe_devices(cluster, rank);
  if (cluster.device_ids_given)
    environment.set("FLAGS_selected_gpus", ids);
  else
    environment.erase("FLAGS_selected_gpus");
  environment.set("PADDLE_LOCAL_DEVICE_IDS", ids);
  if (cluster.device == DeviceKind::cuda) {
    environment.set("CUDA_VISIBLE_DEVICES", cluster.own_gpus_only
                                                ? describe_own_gpus(cluster, rank)
                                                : fmt::format("{}", fmt::join(cluster.visible_gpus, ",")));
    environment.set_if_absent("CUDA_DEVICE_ORDER", "PCI_BUS_ID");  // as nvidia-smi and --gpus count
    return;
  }
  environment.set("PADDLE_DISTRI_BACKEND", "gloo");
  if (cluster.hide_gpus) environment.set("CUDA_VISIBLE_DEVICES", "");
}

void write_gloo(Environment& environment) {
  environment.set_if_absent("PADDLE_WITH_GLOO", "0");
  const std::string mode = environment.get_or("PADDLE_WITH_GLOO", "0");
  if (mode == "1" || mode == "2") environment.set("PADDLE_GLOO_RENDEZVOUS", "3");  // HTTP
}

// A host has several networks; without a word, libraries take the first one or that of the host's name.
void write_interface(const ClusterSpec& cluster, Environment& environment) {
  if (cluster.node_count() == 1 || cluster.interface.empty()) return;
  for (const char* name : {"NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME"})
    environment.set_if_absent(name, cluster.interface);
  if (cluster.ipv6)
    environment.set_if_absent("NCCL_SOCKET_FAMILY", "AF_INET6");  // else IPv4 where there is any
}

}  // namespace

void write_paddle_environment(const ClusterSpec& cluster, const Endpoints& endpoints, int rank,
                              const PaddleNames& names, Environment& environment) {
  // Proxies catch the rendezvous; the role must be a trainer's; the others turn a launcher that a worker
  // starts into the one of 2020.
  for (const char* name : {"http_proxy", "https_proxy", "PADDLE_TRAINING_ROLE", "TRAINING_ROLE",
                           "FLAGS_START_PORT", "DISTRIBUTED_TRAINER_ENDPOINTS"})
    environment.erase(name);
  const auto set_int = [&](const char* name, int value) { environment.set(name, std::to_string(value)); };
  const int local_rank = local_rank_of(cluster, rank);
  set_int("PADDLE_TRAINER_ID", rank);
  set_int("PADDLE_TRAINERS_NUM", cluster.world_size());
  environment.set("PADDLE_CURRENT_ENDPOINT", endpoints.ranks.at(static_cast<std::size_t>(rank)).describe());
  set_int("PADDLE_RANK_IN_NODE", local_rank);
  set_int("PADDLE_GLOBAL_RANK", rank);
  set_int("PADDLE_GLOBAL_SIZE", cluster.world_size());
  set_int("PADDLE_LOCAL_RANK", local_rank);
  set_int("PADDLE_LOCAL_SIZE", cluster.local_size());
  set_int("PADDLE_NNODES", cluster.node_count());
  environment.set("PADDLE_MASTER", endpoints.master.describe());
  write_devices(cluster, rank, environment);
  write_gloo(environment);
  write_interface(cluster, environment);
  environment.set("PADDLE_LOG_DIR", names.log_dir);
  environment.set("PADDLE_AUTO_CLUSTER", names.auto_cluster);
  environment.set_if_absent("POD_NAME", names.pod);
  if (names.backup_env.empty())
    environment.erase("PADDLE_BACKUP_ENV_PATH");
  else
    environment.set("PADDLE_BACKUP_ENV_PATH", names.backup_env);
}

void write_torch_environment(const ClusterSpec& cluster, const Endpoints& endpoints, int rank,
                             const TorchNames& names, Environment& environment) {
  const auto set_int = [&](const char* name, int value) { environment.set(name, std::to_string(value)); };
  if (cluster.node_count() > 1)
    set_int("NODE_RANK", cluster.node_rank);
  else if (environment.get("NODE_RANK") == environment.get("GROUP_RANK"))
    environment.erase("NODE_RANK");  // of the run around this one, when a rank starts fleetrun
  set_int("RANK", rank);
  set_int("WORLD_SIZE", cluster.world_size());
  set_int("LOCAL_RANK", names.virtual_local_rank ? 0 : local_rank_of(cluster, rank));
  set_int("LOCAL_WORLD_SIZE", cluster.local_size());
  set_int("GROUP_RANK", cluster.node_rank);
  set_int("GROUP_WORLD_SIZE", cluster.node_count());
  set_int("ROLE_RANK", rank);
  set_int("ROLE_WORLD_SIZE", cluster.world_size());
  environment.set("ROLE_NAME", names.role);
  environment.set("MASTER_ADDR", endpoints.master.host);
  set_int("MASTER_PORT", endpoints.master.port);
  environment.set("TORCHELASTIC_RUN_ID", names.run_id);
  set_int("TORCHELASTIC_RESTART_COUNT", names.restarts);
  set_int("TORCHELASTIC_MAX_RESTARTS", names.max_restarts);
  environment.set("TORCHELASTIC_USE_AGENT_STORE", "False");  // rank 0 serves its own store
  environment.set("TORCHELASTIC_ERROR_FILE", names.error_file);
  environment.set("TORCHELASTIC_SIGNALS_TO_HANDLE", names.signals);
  environment.set_if_absent("TORCH_NCCL_ASYNC_ERROR_HANDLING", "1");
}

}  // namespace fleetrun::launch
