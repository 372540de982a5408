#include "launch/run/join_nodes.h"

#include <algorithm>
#include <future>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "base/text/split_list.h"
#include "launch/cli/flags/redact_command.h"
#include "launch/cli/flags/shell_words.h"
#include "launch/host/host_facts.h"
#include "launch/nodes/node_key.h"
#include "launch/nodes/places.h"
#include "launch/plan/resolve_names.h"
#include "launch/process/proc_files.h"

namespace fleetrun::launch {
namespace {

// The words that started this node. They start the others, too, unless they name its place or list the places of all.
// They are for the console.
std::string command_of_all(const Membership& members) {
  if (members.node_rank || !members.names.empty()) return "";
  const std::string bytes = read_kernel_file("/proc/self/cmdline");
  std::vector<std::string> words;
  for (std::size_t begin = 0; begin < bytes.size(); begin += words.back().size() + 1)
    words.push_back(bytes.substr(begin, bytes.find('\0', begin) - begin));
  return quote_words(redact_command(std::move(words)));
}

}  // namespace

std::vector<std::string> possible_successors(const LaunchOptions& options) {
  if (!is_elastic(options)) return {};
  std::vector<std::string> names = split_list(options.rejoin_at.value);
  for (const NodePlace& node : read_places(options.log_dir.value).value_or(Placed()).nodes)
    names.push_back(node.address);
  // All at once: a name server that does not answer costs its patience once.
  std::vector<std::future<NamedNode>> answers;
  answers.reserve(names.size());
  for (const std::string& name : names)
    answers.push_back(std::async(std::launch::async, [name] { return resolve_node(name); }));
  std::vector<std::string> addresses;
  for (std::future<NamedNode>& answer : answers)
    std::ranges::copy(addresses_of(answer.get()), std::back_inserter(addresses));
  return addresses;
}

NodeSessionOptions node_options(const RunPlan& plan, const LogFolder& logs, const ExitReport& report) {
  const LaunchOptions& options = plan.options;
  const Membership& members = *plan.members;
  const NodeKey key = find_node_key(options, plan.environment);
  return {.members = members,
          .key = key,
          .join = {.address = members.host,
                   .host = report.host,
                   .logs = logs.absolute(),
                   .node_rank = members.node_rank,
                   .device_ids = plan.cluster.device_ids,
                   .terms = plan.terms},
          .run_id = report.run_id,
          .command = command_of_all(members),
          .join_timeout = options.join_timeout.value,
          .elastic_timeout = options.elastic_timeout.value,
          .takes_in_while_running = plan.saves_when_stopped,
          .starts_others = plan.starter_news >= 0,
          .restart = {.most = most_restarts(options),
                      .window = options.restart_window.value,
                      .first_delay = options.restart_delay.value,
                      .never_after = options.no_restart_on.value}};
}

ClusterSpec with_others(ClusterSpec cluster, const LaunchOptions& options, const Placed& placed) {
  cluster.nodes.clear();
  for (const NodePlace& node : placed.nodes) cluster.nodes.push_back({node.address, node.device_ids});
  cluster.node_rank = placed.node_rank;
  cluster.host = placed.nodes.at(static_cast<std::size_t>(placed.node_rank)).address;
  if (cluster.interface.empty()) cluster.interface = interface_of(probe_host(), cluster.host);
  cluster.console = plan_console(options, {.first = cluster.first_rank(),
                                           .local_size = cluster.local_size(),
                                           .world = cluster.world_size(),
                                           .elastic = is_elastic(options)});
  if (!is_elastic(options)) check_named_ranks(options, cluster);  // nodes come and go, and ranks with them
  return cluster;
}

}  // namespace fleetrun::launch
