// Variables of IBM Spectrum LSF ("Environment variables set for job execution"), and of its jsrun.
#include <fmt/format.h>

#include "launch/cli/flags/flag_values.h"
#include "launch/schedulers/read_values.h"
#include "launch/schedulers/sources.h"

namespace fleetrun::launch {
namespace {

// "host1 2 host2 4"
std::vector<NodeSlots> read_pairs(const std::string& source, const std::string& text) {
  const std::vector<std::string> words = split_at_spaces(source, text);
  std::vector<std::string> hosts;
  for (std::size_t at = 0; at < words.size(); at += 2) {
    int slots = 0;
    if (at + 1 == words.size() || !parse_whole(words[at + 1], slots) || slots < 1 || slots > kMostNodes ||
        std::ssize(hosts) + slots > kMostNodes)
      throw bad_allocation(fmt::format(
          "{} has no number of slots after \"{}\"; it must be like \"host1 2 host2 4\"", source, words[at]));
    hosts.insert(hosts.end(), static_cast<std::size_t>(slots), words[at]);
  }
  return count_hosts(source, hosts);
}

// jsrun starts no task on the node of the batch script, which is the first.
void drop_launch_node(Allocation& allocation) {
  if (allocation.nodes.size() > 1) allocation.nodes.erase(allocation.nodes.begin());
}

void add_jsrun_task(const Environment& environment, Allocation& allocation) {
  const auto rank = number_in(environment, "JSM_NAMESPACE_RANK");
  if (!rank) return;
  drop_launch_node(allocation);
  allocation.task = Task{.rank = *rank,
                         .size = number_in(environment, "JSM_NAMESPACE_SIZE").value_or(1),
                         .local_rank = number_in(environment, "JSM_NAMESPACE_LOCAL_RANK").value_or(0),
                         .local_size = number_in(environment, "JSM_NAMESPACE_LOCAL_SIZE").value_or(1),
                         .found_in = "JSM_NAMESPACE_RANK"};
  allocation.started_on_every_node = true;
}

// All that are set must list the same hosts in the same order.
void check_same(const Allocation& allocation, const std::string& source,
                const std::vector<NodeSlots>& nodes) {
  bool same = nodes.size() == allocation.nodes.size();
  for (std::size_t i = 0; same && i < nodes.size(); ++i) same = nodes[i].host == allocation.nodes[i].host;
  if (!same)
    throw bad_allocation(fmt::format("{} lists {}, but {} lists {}", allocation.found_in,
                                     list_hosts(allocation.nodes), source, list_hosts(nodes)));
}

}  // namespace

std::optional<Allocation> from_lsf(const SchedulerFacts& facts) {
  const Environment& environment = facts.environment;
  Allocation allocation = {.scheduler = Scheduler::lsf};
  const auto add = [&](const std::string& source, const std::vector<NodeSlots>& nodes) {
    if (!allocation.found_in.empty()) return check_same(allocation, source, nodes);
    allocation.found_in = source;
    allocation.nodes = nodes;
  };
  if (const std::string text = environment.get_or("LSB_MCPU_HOSTS", ""); !text.empty())
    add("LSB_MCPU_HOSTS", read_pairs("LSB_MCPU_HOSTS", text));
  if (const std::string text = environment.get_or("LSB_HOSTS", ""); !text.empty())
    add("LSB_HOSTS", count_hosts("LSB_HOSTS", split_at_spaces("LSB_HOSTS", text)));
  // LSF leaves LSB_HOSTS out when the list is too long for a variable.
  for (const char* name : {"LSB_DJOB_HOSTFILE", "LSB_DJOB_RANKFILE"}) {
    const std::string path = environment.get_or(name, "");
    if (path.empty() || !allocation.nodes.empty()) continue;
    const std::string text =
        with_context(fmt::format("reading {}", name), [&] { return facts.read_file(path); });
    const std::string source = fmt::format("{} ({})", name, path);
    allocation.found_in = name;
    allocation.nodes = count_hosts(source, split_at_spaces(source, text));
  }
  if (allocation.nodes.empty()) return std::nullopt;
  add_jsrun_task(environment, allocation);
  allocation.node_count = static_cast<int>(allocation.nodes.size());
  allocation.job_id = environment.get_or("LSB_JOBID", "");
  allocation.job_id_source = "LSB_JOBID";
  if (const auto index = number_in(environment, "LSB_JOBINDEX"); index && *index > 0)
    allocation.job_id += fmt::format("[{}]", *index);
  allocation.restart_count = environment.get_or("LSB_RESTART", "") == "Y" ? 1 : 0;
  return allocation;
}

}  // namespace fleetrun::launch
