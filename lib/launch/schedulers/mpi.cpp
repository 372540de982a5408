// The variables that MPI launchers give to tasks. Sources: docs.open-mpi.org, "Environment variables set by mpirun"; MPICH's wiki,
// "Hydra process management framework"; Intel MPI's developer reference; the PMIx standard.
#include <array>
#include <string_view>

#include "launch/schedulers/read_values.h"
#include "launch/schedulers/sources.h"

namespace fleetrun::launch {
namespace {

struct Dialect {
  Scheduler scheduler;
  const char *rank, *size, *local_rank, *local_size;
};

constexpr std::array<Dialect, 4> kDialects = {
    {{Scheduler::open_mpi, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
      "OMPI_COMM_WORLD_LOCAL_SIZE"},
     {Scheduler::hydra, "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_LOCAL_RANK",
      "MV2_COMM_WORLD_LOCAL_SIZE"},
     {Scheduler::hydra, "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"},
     {Scheduler::pmix, "PMIX_RANK", "", "", ""}}};

// "648019968.0;tcp://10.0.0.1,192.168.0.1:53997;tcp6://[fd00::1]:51423" is how Open MPI 4 tells its daemons where mpirun runs, which is
// the host of task 0 unless the user lists other hosts. The check of node 0's address notices that.
std::string host_of_mpirun(const Environment& environment) {
  constexpr std::string_view kStart = "tcp://";
  const std::string uri = environment.get_or("OMPI_MCA_orte_hnp_uri", "");
  const std::size_t start = uri.find(kStart);
  if (start == std::string::npos) return "";
  const std::size_t first = start + kStart.size();
  std::string host = uri.substr(first, uri.find_first_of(",:;", first) - first);
  check_host("OMPI_MCA_orte_hnp_uri", host);
  return host;
}

// So that two runs on the same hosts meet at different ports.
void add_mpi_job(const Environment& environment, Allocation& allocation) {
  const auto name = first_set(environment, {"OMPI_MCA_ess_base_jobid", "PMIX_NAMESPACE"});
  if (!name) return;
  allocation.job_id = environment.get_or(*name, "");
  allocation.job_id_source = *name;
}

}  // namespace

std::optional<Allocation> from_mpi(const SchedulerFacts& facts) {
  const Environment& environment = facts.environment;
  for (const Dialect& dialect : kDialects) {
    const auto rank = number_in(environment, dialect.rank);
    if (!rank) continue;
    Task task = {.rank = *rank,
                 .size = number_in(environment, dialect.size).value_or(0),
                 .local_rank = number_in(environment, dialect.local_rank).value_or(0),
                 .local_size = number_in(environment, dialect.local_size).value_or(1),
                 .found_in = dialect.rank};
    Allocation allocation = {.scheduler = dialect.scheduler, .found_in = dialect.rank};
    if (task.size > 0) allocation.found_in = dialect.size;
    // With several tasks on a node the number of nodes is unknown.
    allocation.node_count = task.local_size > 1 && task.local_size < task.size ? 0 : task.size;
    if (task.local_size > 1 && task.local_size >= task.size) allocation.node_count = 1;
    allocation.this_node = task.local_size > 1 ? std::nullopt : rank;
    allocation.this_node_source = dialect.rank;
    allocation.task = task;
    allocation.started_on_every_node = true;
    allocation.master = host_of_mpirun(environment);
    allocation.master_source = "OMPI_MCA_orte_hnp_uri";
    add_mpi_job(environment, allocation);
    return allocation;
  }
  return std::nullopt;
}

}  // namespace fleetrun::launch
