// Variables of PBS Professional, OpenPBS ("man qsub") and Torque ("Exported batch environment variables").
#include <fmt/format.h>

#include "launch/schedulers/read_values.h"
#include "launch/schedulers/sources.h"

namespace fleetrun::launch {
namespace {

// The batch script is task 1 of the job; the task manager, which pbsdsh asks, counts on from there.
bool is_further_task(const Environment& environment) {
  return number_in(environment, "PBS_TASKNUM").value_or(1) > 1;
}

std::string read_nodes(const SchedulerFacts& facts, const std::string& path) {
  try {
    return facts.read_file(path);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::missing) throw;
    throw Error(
        error.kind(), error.message(),
        "older PBS and Torque write the node file on the first node only; give --master, --nnodes and "
        "--node_rank, or under mpirun --master and --scheduler=openmpi");
  }
}

// Older PBS and Torque set PBS_NODEFILE on the first node only. On the others, nothing says how many nodes there are.
std::optional<Allocation> without_node_file(const Environment& environment) {
  const std::string job = environment.get_or("PBS_JOBID", "");
  if (job.empty() || !is_further_task(environment)) return std::nullopt;
  return Allocation{.scheduler = Scheduler::pbs,
                    .found_in = "PBS_TASKNUM",
                    .node_count = 0,
                    .started_on_every_node = true,
                    .job_id = job,
                    .job_id_source = "PBS_JOBID"};
}

}  // namespace

// The node file has a line per slot.
std::optional<Allocation> from_pbs(const SchedulerFacts& facts) {
  const Environment& environment = facts.environment;
  const std::string path = environment.get_or("PBS_NODEFILE", "");
  if (path.empty()) return without_node_file(environment);
  const std::string source = fmt::format("PBS_NODEFILE ({})", path);
  Allocation allocation = {.scheduler = Scheduler::pbs, .found_in = "PBS_NODEFILE"};
  const std::string text = with_context("reading PBS_NODEFILE", [&] { return read_nodes(facts, path); });
  allocation.nodes = count_hosts(source, split_at_spaces(source, text));
  allocation.node_count = static_cast<int>(allocation.nodes.size());
  allocation.job_id = environment.get_or("PBS_JOBID", "");
  allocation.job_id_source = "PBS_JOBID";
  allocation.started_on_every_node = is_further_task(environment);
  return allocation;
}

}  // namespace fleetrun::launch
