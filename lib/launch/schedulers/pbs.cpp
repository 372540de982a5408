// Variables of PBS Professional, OpenPBS ("man qsub") and Torque ("Exported batch environment variables").
#include <fmt/format.h>

#include "launch/schedulers/read_values.h"
#include "launch/schedulers/sources.h"

namespace fleetrun::launch {

// The node file has a line per slot. The batch script is task 1 of the job; the task manager, which pbsdsh asks, counts on from there.
std::optional<Allocation> from_pbs(const SchedulerFacts& facts) {
  const Environment& environment = facts.environment;
  const std::string path = environment.get_or("PBS_NODEFILE", "");
  if (path.empty()) return std::nullopt;
  const std::string source = fmt::format("PBS_NODEFILE ({})", path);
  Allocation allocation = {.scheduler = Scheduler::pbs, .found_in = "PBS_NODEFILE"};
  const std::string text = with_context("reading PBS_NODEFILE", [&] { return facts.read_file(path); });
  allocation.nodes = count_hosts(source, split_at_spaces(source, text));
  allocation.node_count = static_cast<int>(allocation.nodes.size());
  allocation.job_id = environment.get_or("PBS_JOBID", "");
  allocation.job_id_source = "PBS_JOBID";
  allocation.started_on_every_node = number_in(environment, "PBS_TASKNUM").value_or(1) > 1;
  return allocation;
}

}  // namespace fleetrun::launch
