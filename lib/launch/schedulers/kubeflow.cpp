// Kubeflow Trainer's PET_* (the variables that torchrun reads) and the older PyTorchJob's MASTER_ADDR, WORLD_SIZE and RANK. Source:
// kubeflow/training-operator, pkg/controller.v1/pytorch/envvar.go and elastic.go.
#include <fmt/format.h>

#include "base/system/endpoint.h"
#include "launch/cli/flags/flag_values.h"
#include "launch/cli/flags/peer_values.h"
#include "launch/schedulers/read_values.h"
#include "launch/schedulers/sources.h"

namespace fleetrun::launch {
namespace {

// A number, "cpu" or "gpu". Kubeflow sets "auto" in every pod that says nothing else, so this is left to --nproc_per_node's default.
std::optional<WorkerCount> workers_in(const Environment& environment, const std::string& name) {
  const std::string text = environment.get_or(name, "");
  return text.empty() || text == "auto" ? std::nullopt : std::optional(parse_worker_count(name, text));
}

void add_port(const Environment& environment, const std::string& name, Allocation& allocation) {
  if (const std::string text = environment.get_or(name, ""); !text.empty())
    allocation.master_port = parse_port(name, text);
}

// The first pod gets "localhost" as the address of the first pod.
void add_master(const Environment& environment, const std::string& name, Allocation& allocation) {
  allocation.master = environment.get_or(name, "");
  allocation.master_source = name;
  const bool is_local = allocation.master == "localhost" || allocation.master.starts_with("127.");
  if (const std::string own = environment.get_or("HOSTNAME", "");
      is_local && allocation.this_node == 0 && !own.empty()) {
    allocation.master = own;
    allocation.master_source = "HOSTNAME";
  }
  check_host(allocation.master_source, allocation.master);
}

void check_place(const std::string& source, const Allocation& allocation) {
  if (allocation.this_node && *allocation.this_node >= allocation.node_count)
    throw bad_allocation(fmt::format("{} is {}, but {} gives {} nodes", source, *allocation.this_node,
                                     allocation.found_in, allocation.node_count));
}

}  // namespace

std::optional<Allocation> from_kubeflow_trainer(const SchedulerFacts& facts) {
  const Environment& environment = facts.environment;
  const std::string nodes = environment.get_or("PET_NNODES", "");
  const auto master = first_set(environment, {"PET_MASTER_ADDR", "PET_RDZV_ENDPOINT"});
  if (nodes.empty() || !master) return std::nullopt;
  Allocation allocation = {.scheduler = Scheduler::kubeflow_trainer, .found_in = "PET_NNODES"};
  const NodeRange range = *parse_nodes("PET_NNODES", nodes);
  allocation.node_count = range.most;
  if (range.least < range.most) allocation.least_nodes = range.least;
  allocation.this_node = number_in(environment, "PET_NODE_RANK");
  allocation.this_node_source = "PET_NODE_RANK";
  check_place("PET_NODE_RANK", allocation);
  if (*master == "PET_MASTER_ADDR") {
    add_master(environment, *master, allocation);
    add_port(environment, "PET_MASTER_PORT", allocation);
  } else {
    const HostAndPort point = split_host_and_port(environment.get_or(*master, ""));
    check_host(*master, point.host);
    allocation.master = point.host;
    allocation.master_source = *master;
    if (point.port) allocation.master_port = parse_port(*master, *point.port);
  }
  allocation.workers_per_node = workers_in(environment, "PET_NPROC_PER_NODE");
  allocation.workers_source = "PET_NPROC_PER_NODE";
  allocation.started_on_every_node = true;
  return allocation;
}

std::optional<Allocation> from_pytorch_job(const SchedulerFacts& facts) {
  const Environment& environment = facts.environment;
  const auto rank = number_in(environment, "RANK"), size = number_in(environment, "WORLD_SIZE");
  const bool in_pod = !environment.get_or("KUBERNETES_SERVICE_HOST", "").empty();
  if (!in_pod || !rank || !size || environment.get_or("MASTER_ADDR", "").empty()) return std::nullopt;
  Allocation allocation = {.scheduler = Scheduler::pytorch_job, .found_in = "WORLD_SIZE"};
  allocation.workers_per_node = workers_in(environment, "PET_NPROC_PER_NODE");
  allocation.workers_source = "PET_NPROC_PER_NODE";
  // Newer operators multiply the pods by nprocPerNode. RANK is the number of the pod in all of them.
  const WorkerCount count = allocation.workers_per_node.value_or(WorkerCount());
  const int workers = count.of == WorkerCount::Of::number ? count.number : 1;
  const bool counts_pods =
      environment.get_or("PET_NNODES", "") == std::to_string(*size) || *size % workers != 0;
  allocation.node_count = counts_pods ? *size : *size / workers;
  allocation.this_node = rank;
  allocation.this_node_source = "RANK";
  check_place("RANK", allocation);
  add_master(environment, "MASTER_ADDR", allocation);
  add_port(environment, "MASTER_PORT", allocation);
  allocation.started_on_every_node = true;
  return allocation;
}

}  // namespace fleetrun::launch
