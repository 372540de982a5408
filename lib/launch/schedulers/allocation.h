// The nodes that a batch system, an MPI launcher, Kubernetes or a list of hosts gives to a run, and the place of this process
// among them. Plain data, which the files of this room read out of variables and node files.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "launch/cli/flags/peer_values.h"
#include "launch/cli/flags/start_by.h"

namespace fleetrun::launch {

enum class Scheduler {
  host_list,  // --hosts, --hostfile
  paddle_cloud,
  kubeflow_trainer,  // PET_*
  slurm,
  lsf,
  pbs,
  open_mpi,
  hydra,  // MPICH, Intel MPI, MVAPICH
  pmix,
  volcano,
  pytorch_job,
  kubernetes  // Indexed Job, JobSet, StatefulSet
};
std::string name_of(Scheduler scheduler);  // "Slurm"
std::string word_of(Scheduler scheduler);  // "slurm", as --scheduler takes it

struct NodeSlots {
  std::string host;
  std::optional<int> slots;  // tasks that the scheduler would start there

  bool operator==(const NodeSlots&) const = default;
};

// This process is one of several that a launcher such as srun or mpirun started from one command line.
struct Task {
  int rank = 0;
  int size = 1;
  int local_rank = 0;
  int local_size = 1;    // tasks on this node
  std::string found_in;  // "SLURM_PROCID"

  bool operator==(const Task&) const = default;
};

struct Allocation {
  Scheduler scheduler = Scheduler::slurm;
  std::string found_in;            // the variable or file with the nodes, for messages: "SLURM_STEP_NODELIST"
  int node_count = 1;              // size of `nodes`, unless that is empty; 0: unknown, --nnodes must tell
  std::optional<int> least_nodes;  // that the run needs; none: all of them
  std::vector<NodeSlots> nodes;    // in the order of node ranks; empty: only their number is known
  std::optional<int> this_node;    // place of this host in `nodes`; none: its addresses tell
  std::string this_node_source;    // "SLURM_NODEID"
  std::optional<Task> task;        // none: no launcher around us, as in a batch script
  // Whether the command line runs on every node already, as under srun. If not, this process is on one node and somebody must start
  // the others.
  bool started_on_every_node = false;
  bool is_left_out = false;                  // this node, by --exclude_hosts
  StartBy start_by = StartBy::none;          // what this fleetrun starts the others with; none: it does not
  std::string master;                        // host of the first node where `nodes` is empty; "": unknown
  std::optional<std::uint16_t> master_port;  // none: derived from the id of the job
  std::string master_source;                 // "MASTER_ADDR"
  std::optional<WorkerCount> workers_per_node;  // that the system asks for: PET_NPROC_PER_NODE
  std::string workers_source;
  std::optional<std::uint16_t> start_port;  // of the ranks: PADDLE_PORT
  std::optional<int> gpus_on_node;          // that the scheduler gave to this node
  std::string job_id;                       // "": unknown
  std::string job_id_source;                // "SLURM_JOB_ID"
  int restart_count = 0;                    // how often the scheduler has started this job again

  // Several tasks run on a node, so this process is a rank rather than the launcher of its node.
  bool is_one_rank() const;
  std::string describe() const;  // "Slurm job 4242, node 1 of 2, from SLURM_STEP_NODELIST"
  bool operator==(const Allocation&) const = default;
};

}  // namespace fleetrun::launch
