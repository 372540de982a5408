// Variables: "man sbatch", "OUTPUT ENVIRONMENT VARIABLES", and "man srun".
#include <fmt/format.h>
#include <algorithm>
#include <cstdint>
#include <set>

#include "base/text/plural.h"
#include "launch/cli/flags/flag_values.h"
#include "launch/schedulers/read_values.h"
#include "launch/schedulers/slurm_lists.h"
#include "launch/schedulers/sources.h"

namespace fleetrun::launch {
namespace {

// The steps of the batch script and of salloc's shell have numbers from here on (SLURM_BATCH_SCRIPT, SLURM_INTERACTIVE_STEP in slurm.h).
constexpr std::uint64_t kFirstSpecialStep = 0xfffffff0;

// A batch script inherits the variables of the shell in which sbatch was typed. If that was inside a step, the step is of another job,
// mostly on other nodes.
bool is_of_this_job(const std::string& step_list, const Environment& environment) {
  const std::string job_list = environment.get_or("SLURM_JOB_NODELIST", "");
  if (job_list.empty()) return true;
  const std::vector<std::string> of_job = expand_hosts("SLURM_JOB_NODELIST", job_list);
  const std::set<std::string> known(of_job.begin(), of_job.end());
  const std::vector<std::string> of_step = expand_hosts("SLURM_STEP_NODELIST", step_list);
  return std::all_of(of_step.begin(), of_step.end(),
                     [&](const std::string& host) { return known.count(host) != 0; });
}

// Open MPI's mpirun starts its daemons on the other nodes of the job with one srun, and its ranks there inherit the variables of this
// step, which lacks the node of mpirun.
bool is_step_of_daemons(const std::string& step_list, const Environment& environment) {
  const auto ranks = number_in(environment, "OMPI_COMM_WORLD_SIZE");
  const std::string job_list = environment.get_or("SLURM_JOB_NODELIST", "");
  if (!ranks || job_list.empty()) return false;
  const auto in_step = std::ssize(expand_hosts("SLURM_STEP_NODELIST", step_list));
  return in_step != *ranks && in_step < std::ssize(expand_hosts("SLURM_JOB_NODELIST", job_list));
}

// Inside a step that srun started for the run, rather than in a batch script or in the shell of salloc.
bool is_in_step(const Environment& environment) {
  const std::string list = environment.get_or("SLURM_STEP_NODELIST", "");
  if (list.empty()) return false;
  std::uint64_t step = 0;
  const bool is_special =
      parse_whole(environment.get_or("SLURM_STEP_ID", "0"), step) && step >= kFirstSpecialStep;
  return !is_special && is_of_this_job(list, environment) && !is_step_of_daemons(list, environment);
}

void check_count(const Environment& environment, const std::string& name, const Allocation& allocation) {
  const auto count = number_in(environment, name);
  if (count && *count != allocation.node_count)
    throw bad_allocation(fmt::format("{} is {}, but {} lists {} ({})", name, *count, allocation.found_in,
                                     plural(allocation.node_count, "node"), list_hosts(allocation.nodes)));
}

void add_slots(const Environment& environment, const std::string& name, Allocation& allocation) {
  const std::string text = environment.get_or(name, "");
  if (text.empty()) return;
  const std::vector<int> counts = expand_counts(name, text);
  if (counts.size() != allocation.nodes.size())
    throw bad_allocation(fmt::format("{} is \"{}\", for {}, but {} lists {} ({})", name, text,
                                     plural(counts.size(), "node"), allocation.found_in,
                                     plural(allocation.node_count, "node"), list_hosts(allocation.nodes)));
  for (std::size_t node = 0; node < counts.size(); ++node) allocation.nodes[node].slots = counts[node];
}

std::optional<int> find_place(const Environment& environment, const Allocation& allocation) {
  const auto node = number_in(environment, "SLURM_NODEID");
  if (node && *node >= allocation.node_count)
    throw bad_allocation(fmt::format("SLURM_NODEID is {}, but {} lists {} ({})", *node, allocation.found_in,
                                     plural(allocation.node_count, "node"), list_hosts(allocation.nodes)));
  return node;
}

Task find_task(const Environment& environment, const Allocation& allocation) {
  const auto own_slots = allocation.this_node
                             ? allocation.nodes[static_cast<std::size_t>(*allocation.this_node)].slots
                             : std::nullopt;
  int tasks = 0;
  for (const NodeSlots& node : allocation.nodes) tasks += node.slots.value_or(1);
  Task task = {.rank = number_in(environment, "SLURM_PROCID").value_or(0),
               .size = tasks,
               .local_rank = number_in(environment, "SLURM_LOCALID").value_or(0),
               .local_size = own_slots.value_or(1),
               .found_in = "SLURM_PROCID"};
  if (const auto name = first_set(environment, {"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS", "SLURM_NPROCS"}))
    task.size = *number_in(environment, *name);
  return task;
}

void add_job(const Environment& environment, bool in_step, Allocation& allocation) {
  if (const auto name = first_set(environment, {"SLURM_JOB_ID", "SLURM_JOBID"})) {
    allocation.job_id = environment.get_or(*name, "");
    allocation.job_id_source = *name;
  }
  if (const std::string step = environment.get_or("SLURM_STEP_ID", ""); in_step && !step.empty())
    allocation.job_id += "." + step;
  allocation.restart_count = number_in(environment, "SLURM_RESTART_COUNT").value_or(0);
  allocation.gpus_on_node = number_in(environment, "SLURM_GPUS_ON_NODE");
}

}  // namespace

std::optional<Allocation> from_slurm(const SchedulerFacts& facts) {
  const Environment& environment = facts.environment;
  const bool in_step = is_in_step(environment);
  const auto list = in_step ? std::optional<std::string>("SLURM_STEP_NODELIST")
                            : first_set(environment, {"SLURM_JOB_NODELIST", "SLURM_NODELIST"});
  if (!list) return std::nullopt;
  Allocation allocation = {.scheduler = Scheduler::slurm, .found_in = *list};
  for (std::string& host : expand_hosts(*list, environment.get_or(*list, "")))
    allocation.nodes.push_back({std::move(host), std::nullopt});
  allocation.node_count = static_cast<int>(allocation.nodes.size());
  allocation.this_node_source = "SLURM_NODEID";
  add_job(environment, in_step, allocation);
  check_count(environment, in_step ? "SLURM_STEP_NUM_NODES" : "SLURM_JOB_NUM_NODES", allocation);
  if (!in_step) return allocation;
  add_slots(environment, "SLURM_STEP_TASKS_PER_NODE", allocation);
  allocation.this_node = find_place(environment, allocation);
  allocation.task = find_task(environment, allocation);
  allocation.started_on_every_node = true;
  return allocation;
}

}  // namespace fleetrun::launch
