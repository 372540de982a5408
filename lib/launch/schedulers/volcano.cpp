// Volcano's plug-ins `svc` and `env`: VC_<TASK>_HOSTS, VC_<TASK>_NUM, VC_TASK_INDEX. Source: volcano-sh/volcano,
// docs/user-guide/how_to_use_svc_plugin.md and how_to_use_env_plugin.md.
#include <fmt/format.h>

#include "base/text/plural.h"
#include "base/text/split_list.h"
#include "launch/schedulers/read_values.h"
#include "launch/schedulers/sources.h"

namespace fleetrun::launch {
namespace {

constexpr std::string_view kStart = "VC_", kEnd = "_HOSTS";

// The names of the variables, the master's first.
std::vector<std::string> host_lists(const Environment& environment) {
  std::vector<std::string> names;
  for (const auto& [name, text] : environment.variables())
    if (name.starts_with(kStart) && name.ends_with(kEnd) && !text.empty())
      names.insert(name == "VC_MASTER_HOSTS" ? names.begin() : names.end(), name);
  return names;
}

std::vector<NodeSlots> read_list(const Environment& environment, const std::string& name) {
  std::vector<NodeSlots> nodes;
  for (const std::string& host : split_list(environment.get_or(name, ""))) {
    check_host(name, host);
    nodes.push_back({host, std::nullopt});
  }
  const std::string number = name.substr(0, name.size() - kEnd.size()) + "_NUM";
  const auto count = number_in(environment, number);
  if (count && *count != std::ssize(nodes))
    throw bad_allocation(fmt::format("{} is {}, but {} lists {} ({})", number, *count, name,
                                     plural(nodes.size(), "node"), list_hosts(nodes)));
  return nodes;
}

// A pod's host name is the first label of its name in the list.
std::optional<int> find_by_name(const std::vector<NodeSlots>& nodes, const std::string& own) {
  for (std::size_t i = 0; i < nodes.size(); ++i)
    if (nodes[i].host.substr(0, nodes[i].host.find('.')) == own) return static_cast<int>(i);
  return std::nullopt;
}

}  // namespace

std::optional<Allocation> from_volcano(const SchedulerFacts& facts) {
  const Environment& environment = facts.environment;
  const std::vector<std::string> lists = host_lists(environment);
  if (lists.empty()) return std::nullopt;
  Allocation allocation = {.scheduler = Scheduler::volcano, .found_in = lists.front()};
  for (const std::string& name : lists)
    for (NodeSlots& node : read_list(environment, name)) allocation.nodes.push_back(std::move(node));
  allocation.node_count = static_cast<int>(allocation.nodes.size());
  allocation.this_node = find_by_name(allocation.nodes, environment.get_or("HOSTNAME", ""));
  allocation.this_node_source = "HOSTNAME";
  const auto index = first_set(environment, {"VC_TASK_INDEX", "VK_TASK_INDEX"});
  // VC_TASK_INDEX counts within one kind of task.
  if (lists.size() == 1 && index) {
    const int place = *number_in(environment, *index);
    if (place >= allocation.node_count || (allocation.this_node && *allocation.this_node != place))
      throw bad_allocation(fmt::format(
          "{} is {}, but {} lists {}{}", *index, place, lists.front(), list_hosts(allocation.nodes),
          allocation.this_node ? " and this host is " + environment.get_or("HOSTNAME", "") : ""));
    allocation.this_node = place;
    allocation.this_node_source = *index;
  }
  allocation.started_on_every_node = true;
  return allocation;
}

}  // namespace fleetrun::launch
