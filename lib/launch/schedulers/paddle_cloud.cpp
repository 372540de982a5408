// PaddlePaddle's cloud and the operator for Kubernetes: the variables that python/paddle/distributed/fleet/cloud_utils.py reads.
#include <fmt/format.h>

#include "base/text/plural.h"
#include "base/text/split_list.h"
#include "launch/cli/flags/flag_values.h"
#include "launch/schedulers/read_values.h"
#include "launch/schedulers/sources.h"

namespace fleetrun::launch {

std::optional<Allocation> from_paddle_cloud(const SchedulerFacts& facts) {
  const Environment& environment = facts.environment;
  const std::string trainers = environment.get_or("PADDLE_TRAINERS", "");
  const auto node = number_in(environment, "PADDLE_TRAINER_ID");
  if (trainers.empty() || !node || environment.get_or("POD_IP", "").empty()) return std::nullopt;
  Allocation allocation = {.scheduler = Scheduler::paddle_cloud, .found_in = "PADDLE_TRAINERS"};
  for (const std::string& host : split_list(trainers)) {
    check_host("PADDLE_TRAINERS", host);
    allocation.nodes.push_back({host, number_in(environment, "TRAINER_PORTS_NUM")});
  }
  allocation.node_count = static_cast<int>(allocation.nodes.size());
  const auto count = number_in(environment, "PADDLE_TRAINERS_NUM");
  if (count && *count != allocation.node_count)
    throw bad_allocation(fmt::format("PADDLE_TRAINERS_NUM is {}, but PADDLE_TRAINERS lists {} ({})", *count,
                                     plural(allocation.node_count, "node"), list_hosts(allocation.nodes)));
  if (*node >= allocation.node_count)
    throw bad_allocation(fmt::format("PADDLE_TRAINER_ID is {}, but PADDLE_TRAINERS lists {} ({})", *node,
                                     plural(allocation.node_count, "node"), list_hosts(allocation.nodes)));
  allocation.this_node = node;
  allocation.this_node_source = "PADDLE_TRAINER_ID";
  allocation.started_on_every_node = true;
  // As PaddlePaddle has it, the first of TRAINER_PORTS_NUM ports that the cloud keeps free for the ranks of the pod.
  const std::string port = environment.get_or("PADDLE_PORT", "");
  if (!port.empty() && environment.has("TRAINER_PORTS_NUM"))
    allocation.start_port = parse_port("PADDLE_PORT", port);
  return allocation;
}

}  // namespace fleetrun::launch
