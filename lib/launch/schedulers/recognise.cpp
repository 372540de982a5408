#include "launch/schedulers/recognise.h"

#include <array>
#include <cctype>

#include <fmt/format.h>

#include "base/text/plural.h"
#include "launch/schedulers/read_values.h"

namespace fleetrun::launch {
namespace {

// In order of strength: who is closer to the run comes first.
struct System {
  Scheduler scheduler;
  std::optional<Allocation> (*read)(const SchedulerFacts&);
};
constexpr std::array<System, 8> kSystems = {{{Scheduler::paddle_cloud, from_paddle_cloud},
                                             {Scheduler::kubeflow_trainer, from_kubeflow_trainer},
                                             {Scheduler::slurm, from_slurm},
                                             {Scheduler::lsf, from_lsf},
                                             {Scheduler::pbs, from_pbs},
                                             {Scheduler::volcano, from_volcano},
                                             {Scheduler::pytorch_job, from_pytorch_job},
                                             {Scheduler::kubernetes, from_indexed_job}}};

bool is_batch_system(const Allocation& allocation) {
  return allocation.scheduler == Scheduler::slurm || allocation.scheduler == Scheduler::lsf ||
         allocation.scheduler == Scheduler::pbs;
}

bool knows_nodes(const Allocation& allocation) {
  return !is_batch_system(allocation) || !allocation.nodes.empty();
}

// Launchers give these to their workers only.
bool is_inside_a_rank(const Environment& environment) {
  return first_set(environment, {"PADDLE_RANK_IN_NODE", "PADDLE_LOCAL_RANK", "TORCHELASTIC_RUN_ID"})
      .has_value();
}

std::string describe_nodes(const Allocation& allocation) {
  const std::string count =
      fmt::format("{} gives {}", allocation.found_in, plural(allocation.node_count, "node"));
  return allocation.nodes.empty() ? count : fmt::format("{} ({})", count, list_hosts(allocation.nodes));
}

std::string choice_hint(const Allocation& one, const Allocation& other) {
  return fmt::format(
      "--scheduler={} or --scheduler={} says which of them to follow; --scheduler=none follows neither",
      word_of(one.scheduler), word_of(other.scheduler));
}

// A system may list names where another has addresses, so only numbers can be compared.
void check_agreement(const Allocation& chosen, const Allocation& other) {
  const bool counted = chosen.node_count > 0 && other.node_count > 0;
  if (counted && chosen.node_count != other.node_count)
    throw bad_allocation(fmt::format("{}, but {}", describe_nodes(chosen), describe_nodes(other)),
                         choice_hint(chosen, other));
  if (chosen.this_node && other.this_node && chosen.this_node != other.this_node)
    throw bad_allocation(
        fmt::format("{} says that this is node {}, but {} says node {}", chosen.this_node_source,
                    *chosen.this_node, other.this_node_source, *other.this_node),
        choice_hint(chosen, other));
}

// srun and jsrun give PMI's and PMIx's variables to their tasks, too. These variables do not tell how many tasks are on a node.
bool are_tasks_of(const Allocation& batch, const Task& task) {
  return batch.is_one_rank() && (task.size == 0 || task.size == batch.task->size);
}

const char* line_for(const Allocation& batch, const Allocation& mpi) {
  const bool is_step = batch.scheduler == Scheduler::slurm && batch.task;
  if (is_step && mpi.scheduler != Scheduler::open_mpi) return "srun --ntasks-per-node=1 fleetrun ...";
  return "mpirun --map-by ppr:1:node (Open MPI), mpiexec -ppn 1 (MPICH)";
}

// The batch system knows the hosts, and the MPI launcher inside it started this process.
void add_tasks(Allocation& batch, const Allocation& mpi) {
  const Task& task = *mpi.task;
  if (are_tasks_of(batch, task)) return;
  if (task.local_size == 1 && task.size > 0 && task.size != batch.node_count)
    throw bad_allocation(fmt::format("{} is {}, but {}", mpi.found_in, task.size, describe_nodes(batch)),
                         fmt::format("start one task on each node: {}", line_for(batch, mpi)));
  batch.task = task;
  if (task.size == 0) batch.task->size = batch.node_count;
  batch.started_on_every_node = true;
  batch.this_node = std::nullopt;  // MPI may number the nodes in another order; their addresses tell
}

bool is_wanted(Scheduler scheduler, const std::string& word) {
  return word == "auto" || word == word_of(scheduler);
}

}  // namespace

std::optional<Allocation> recognise(const SchedulerFacts& facts, const std::string& word) {
  if (word == "none" || is_inside_a_rank(facts.environment)) return std::nullopt;
  std::optional<Allocation> chosen;
  for (const System& system : kSystems) {
    if (!is_wanted(system.scheduler, word)) continue;
    const std::optional<Allocation> found = system.read(facts);
    if (!found) continue;
    if (chosen)
      check_agreement(*chosen, *found);
    else
      chosen = found;
  }
  const std::optional<Allocation> mpi = from_mpi(facts);
  if (!mpi) return chosen;
  if (!chosen || !knows_nodes(*chosen)) return is_wanted(mpi->scheduler, word) ? mpi : chosen;
  if (is_batch_system(*chosen))
    add_tasks(*chosen, *mpi);
  else if (word == "auto")
    check_agreement(*chosen, *mpi);
  return chosen;
}

std::optional<std::uint16_t> port_of_job(const std::string& job_id) {
  // A prime for the number after the job's, such as that of a step, so that neighbours do not meet.
  constexpr std::uint32_t kFirstPort = 15000, kPorts = 10000, kSecondWeight = 2503;
  std::array<std::uint32_t, 2> numbers = {0, 0};
  std::size_t count = 0;
  for (std::size_t at = 0; at < job_id.size() && count < numbers.size();) {
    if (std::isdigit(static_cast<unsigned char>(job_id[at])) == 0) {
      ++at;
      continue;
    }
    for (; at < job_id.size() && std::isdigit(static_cast<unsigned char>(job_id[at])) != 0; ++at)
      numbers[count] = (numbers[count] * 10 + static_cast<std::uint32_t>(job_id[at] - '0')) % kPorts;
    ++count;
  }
  if (count == 0) return std::nullopt;
  return static_cast<std::uint16_t>(kFirstPort + (numbers[0] + kSecondWeight * numbers[1]) % kPorts);
}

}  // namespace fleetrun::launch
