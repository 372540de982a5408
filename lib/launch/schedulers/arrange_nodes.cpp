#include "launch/schedulers/arrange_nodes.h"

#include <algorithm>
#include <sstream>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error/error.h"
#include "base/text/plural.h"
#include "base/text/split_list.h"
#include "launch/schedulers/read_values.h"
#include "launch/schedulers/slurm_lists.h"
#include "launch/schedulers/topology.h"

namespace fleetrun::launch {
namespace {

using Hosts = std::vector<std::string>;

constexpr std::size_t kMostNamed = 8;  // hosts in a line for the user

std::string named(const Hosts& hosts) {
  const Hosts start(hosts.begin(),
                    hosts.begin() + std::ssize(hosts) -
                        std::max<std::ptrdiff_t>(0, std::ssize(hosts) - std::ptrdiff_t{kMostNamed}));
  return fmt::format("{}{}", fmt::join(start, ", "), start.size() < hosts.size() ? ", ..." : "");
}

std::string read_named(const SchedulerFacts& facts, const char* flag, const std::string& path) {
  return with_context(fmt::format("reading the file of {}", flag), [&] { return facts.read_file(path); });
}

bool is_among(const std::string& host, const Hosts& hosts) {
  return std::any_of(hosts.begin(), hosts.end(),
                     [&](const std::string& other) { return is_same_host(host, other); });
}

// The places of the hosts that take part, in their order. Tells the user what it leaves out.
std::vector<std::size_t> places_without_excluded(LaunchOptions& options, const SchedulerFacts& facts,
                                                 const Hosts& hosts, const std::string& found_in) {
  Hosts excluded, left_out, unknown;
  if (const std::string& path = options.exclude_hosts.value; !path.empty())
    excluded = parse_excluded_hosts(path, read_named(facts, "--exclude_hosts", path));
  std::vector<std::size_t> places;
  for (std::size_t place = 0; place < hosts.size(); ++place)
    if (is_among(hosts[place], excluded))
      left_out.push_back(hosts[place]);
    else
      places.push_back(place);
  for (const std::string& host : excluded)
    if (!is_among(host, hosts)) unknown.push_back(host);
  if (places.empty() && !hosts.empty())
    throw bad_allocation(
        fmt::format("{} leaves out all of {}: {}", options.exclude_hosts.value, found_in, named(left_out)));
  if (!left_out.empty())
    options.notes.push_back(fmt::format("--exclude_hosts leaves out {} of {}: {}",
                                        plural(left_out.size(), "node"), hosts.size(), named(left_out)));
  if (!unknown.empty())
    options.notes.push_back(fmt::format("warning: {} names {}, which {} does not list",
                                        options.exclude_hosts.value, named(unknown), found_in));
  return places;
}

std::vector<std::size_t> ordered(LaunchOptions& options, const SchedulerFacts& facts, const Hosts& hosts,
                                 std::vector<std::size_t> places) {
  const std::string& path = options.topology.value;
  if (path.empty()) return places;
  const std::vector<Switch> switches = parse_topology(path, read_named(facts, "--topology", path));
  Hosts left;
  for (const std::size_t place : places) left.push_back(hosts[place]);
  if (const Hosts unknown = without_switch(left, switches); !unknown.empty())
    options.notes.push_back(
        fmt::format("warning: {} has no switch for {}", options.topology.value, named(unknown)));
  std::vector<std::size_t> order;
  for (const std::size_t place : order_by_switch(left, switches)) order.push_back(places[place]);
  return order;
}

std::vector<std::size_t> arranged(LaunchOptions& options, const SchedulerFacts& facts, const Hosts& hosts,
                                  const std::string& found_in) {
  return ordered(options, facts, hosts, places_without_excluded(options, facts, hosts, found_in));
}

template <typename Value>
std::vector<Value> chosen(const std::vector<Value>& values, const std::vector<std::size_t>& places) {
  std::vector<Value> result;
  for (const std::size_t place : places) result.push_back(values[place]);
  return result;
}

// The hosts that are not chosen.
Hosts others(const Hosts& hosts, const std::vector<std::size_t>& places) {
  std::vector<bool> is_chosen(hosts.size());
  for (const std::size_t place : places) is_chosen[place] = true;
  Hosts result;
  for (std::size_t place = 0; place < hosts.size(); ++place)
    if (!is_chosen[place]) result.push_back(hosts[place]);
  return result;
}

bool arranges_nodes(const LaunchOptions& options) {
  return !options.exclude_hosts.value.empty() || !options.topology.value.empty();
}

const char* flag_of(const LaunchOptions& options) {
  return options.topology.value.empty() ? "--exclude_hosts" : "--topology";
}

// For --show_config: where the order comes from.
std::string source_of(const LaunchOptions& options, const std::string& source) {
  return source + (options.exclude_hosts.value.empty() ? "" : " without the hosts of --exclude_hosts") +
         (options.topology.value.empty() ? "" : ", in the order of --topology");
}

}  // namespace

std::vector<std::string> parse_excluded_hosts(const std::string& path, const std::string& text) {
  Hosts hosts;
  std::istringstream lines(text);
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    line.erase(std::min(line.find('#'), line.size()));
    std::istringstream words(line);
    for (std::string word; words >> word;)
      for (std::string& host : expand_hosts(fmt::format("line {} of {}", number, path), word))
        hosts.push_back(std::move(host));
  }
  return hosts;
}

void arrange_nodes(LaunchOptions& options, const SchedulerFacts& facts, Allocation& allocation) {
  if (!arranges_nodes(options)) return;
  if (allocation.nodes.empty())
    throw bad_allocation(fmt::format("{} needs the names of the nodes, which {} does not tell",
                                     flag_of(options), allocation.found_in));
  Hosts hosts;
  for (const NodeSlots& node : allocation.nodes) hosts.push_back(node.host);
  const std::vector<std::size_t> places = arranged(options, facts, hosts, allocation.found_in);
  if (!allocation.started_on_every_node && std::find(places.begin(), places.end(), 0) == places.end())
    throw bad_allocation(fmt::format("{} leaves out {}, where this fleetrun has to start the other nodes",
                                     options.exclude_hosts.value, hosts.front()),
                         "let the scheduler leave out this node: sbatch --exclude does so in Slurm");
  options.left_out = others(hosts, places);
  allocation.nodes = chosen(allocation.nodes, places);
  if (allocation.task)
    allocation.task->size -= static_cast<int>(options.left_out.size());  // one on each of them
  allocation.node_count = static_cast<int>(allocation.nodes.size());
  allocation.found_in = source_of(options, allocation.found_in);
  if (!allocation.this_node) return;
  const auto place = std::find(places.begin(), places.end(), static_cast<std::size_t>(*allocation.this_node));
  allocation.is_left_out = place == places.end();
  allocation.this_node.reset();
  if (!allocation.is_left_out) allocation.this_node = static_cast<int>(place - places.begin());
}

void arrange_host_list(LaunchOptions& options, const SchedulerFacts& facts) {
  if (!arranges_nodes(options) || !options.hosts.value || options.hosts.value->hosts.size() < 2) return;
  HostList& list = *options.hosts.value;
  Hosts hosts;
  for (const HostSlots& host : list.hosts) hosts.push_back(host.host);
  const std::vector<std::size_t> places = arranged(options, facts, hosts, options.hosts.source);
  options.left_out = others(hosts, places);
  list.hosts = chosen(list.hosts, places);
  list.text.clear();
  for (const HostSlots& host : list.hosts)
    list.text += (list.text.empty() ? "" : ",") + bracketed(host.host) +
                 (host.slots ? fmt::format(":{}", *host.slots) : "");
  options.hosts.source = source_of(options, options.hosts.source);
}

void arrange_addresses(LaunchOptions& options, const SchedulerFacts& facts) {
  if (!arranges_nodes(options)) return;
  if (!options.exclude_hosts.value.empty())
    throw bad_allocation(
        fmt::format("--exclude_hosts is for --hosts, --hostfile and schedulers; {} lists the nodes",
                    options.ips.source),
        "take the address out of --ips");
  const Hosts hosts = split_list(options.ips.value);
  const std::vector<std::size_t> places = arranged(options, facts, hosts, options.ips.source);
  options.ips.value = fmt::format("{}", fmt::join(chosen(hosts, places), ","));
  options.ips.source = source_of(options, options.ips.source);
  if (options.node_rank.value)
    options.node_rank.value = static_cast<int>(
        std::find(places.begin(), places.end(), static_cast<std::size_t>(*options.node_rank.value)) -
        places.begin());
}

void arrange_unlisted(LaunchOptions& options) {
  if (!arranges_nodes(options)) return;
  if (options.nnodes.value.value_or(NodeRange()).most > 1)
    throw bad_allocation(fmt::format(
        "{} needs a list of the nodes: --ips, --hosts, --hostfile or a scheduler", flag_of(options)));
  options.notes.push_back(fmt::format("{} has no effect on a run with one node", flag_of(options)));
}

}  // namespace fleetrun::launch
