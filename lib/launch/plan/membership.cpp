#include "launch/plan/membership.h"

#include <sys/socket.h>

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error/error.h"
#include "base/system/endpoint.h"
#include "base/system/socket_address.h"
#include "base/text/split_list.h"
#include "launch/cli/flags/flag_values.h"
#include "launch/cli/flags/start_by.h"

namespace fleetrun::launch {
namespace {

// Beside the ports of PaddlePaddle's workers, which start at 6070, and PyTorch's port for --rdzv_endpoint.
constexpr int kElasticRestarts = 3;  // PaddlePaddle's default for --max_restart
constexpr std::uint16_t kMeetingPort = 6069, kTorchrunPort = 29400;

Error bad_members(const std::string& message, const std::string& hint = "") {
  return Error(ErrorKind::usage, message, hint);
}

template <typename T>
std::string source_of(const Setting<T>& setting, const char* flag) {
  return setting.source.empty() ? flag : setting.source;
}

bool is_here(const std::string& address, const HostFacts& host) {
  return is_loopback(address) ||
         std::find(host.addresses.begin(), host.addresses.end(), address) != host.addresses.end();
}

// A host may have an address that it does not see, such as that of a gateway before it.
NamedNode with_own_address_first(NamedNode node, const HostFacts& host) {
  const auto is_own = [&](const std::string& address) {
    return !is_loopback(address) && is_here(address, host);
  };
  const auto own = std::ranges::find_if(node.others, is_own);
  if (!is_own(node.address) && own != node.others.end()) std::swap(node.address, *own);
  return node;
}

// --host may be one of the addresses of this host's name.
NamedNode with_given_address_first(NamedNode node, const LaunchOptions& options) {
  if (!options.host.value) return node;
  const auto given = std::ranges::find(node.others, *options.host.value);
  if (given != node.others.end()) std::swap(node.address, *given);
  return node;
}

bool is_link_local(const std::string& address) {
  const auto parsed = SocketAddress::from(Endpoint{address, 0});
  return parsed && parsed->is_link_local();
}

void check_reach(const std::string& address, const std::string& source, const std::string& name) {
  if (is_link_local(address))
    throw bad_members(
        fmt::format("{} names {}, a link-local address, which other hosts cannot reach", source, name),
        "give the nodes' global or unique local addresses (fd00::/8)");
}

void check_one_family(const std::vector<NamedNode>& nodes, const std::string& source) {
  if (nodes.empty()) return;
  const auto differs = [&](const NamedNode& node) {
    return is_ipv6(node.address) != is_ipv6(nodes.front().address);
  };
  const auto other = std::find_if(nodes.begin(), nodes.end(), differs);
  if (other == nodes.end()) return;
  const auto describe = [](const NamedNode& node) {
    return fmt::format("{} over {}", node.name, is_ipv6(node.address) ? "IPv6" : "IPv4");
  };
  throw bad_members(fmt::format("{} lists {} and {}: all nodes must be reachable over IPv4, or all over IPv6",
                                source, describe(nodes.front()), describe(*other)));
}

Error cannot_resolve(const std::string& source, const std::string& name) {
  return bad_members(
      fmt::format("{} names {}, which this host cannot resolve", source, name),
      split_host_and_port(name).port
          ? "wanted hosts without ports, such as 10.0.0.2,10.0.0.3; --master_port chooses the port where the nodes meet"
          : "");
}

void check_addresses(const std::vector<NamedNode>& nodes, const std::string& source) {
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j)
      if (nodes[j].address == nodes[i].address)
        throw bad_members(fmt::format("{} lists {} and {}, which are both {}", source, nodes[j].name,
                                      nodes[i].name, nodes[i].address));
    check_reach(nodes[i].address, source, nodes[i].name);
  }
  check_one_family(nodes, source);
  const auto is_local = [](const NamedNode& node) { return is_loopback(node.address); };
  const auto local = std::count_if(nodes.begin(), nodes.end(), is_local);
  if (local == 0 || local == std::ssize(nodes)) return;
  const auto& culprit = *std::find_if(nodes.begin(), nodes.end(), is_local);
  if (culprit.name == culprit.address)
    throw bad_members(fmt::format(
        "{} lists {} beside addresses of other hosts; on every node that address means the node itself",
        source, culprit.name));
  throw bad_members(
      fmt::format("{} names {}, which is {} on this host: no other node can reach that", source, culprit.name,
                  culprit.address),
      fmt::format("give its address instead, or correct the line of {} in /etc/hosts", culprit.name));
}

void check_names(const LaunchOptions& options, const std::vector<NamedNode>& nodes,
                 const std::string& source) {
  std::vector<NamedNode> known;
  for (const NamedNode& node : nodes) {
    if (node.name.empty())
      throw bad_members(
          fmt::format("{} has an empty name: wanted a host before, between and after its commas", source));
    if (std::ranges::count(nodes, node.name, &NamedNode::name) > 1)
      throw bad_members(fmt::format("{} lists {} twice", source, node.name));
    const bool may_be_absent = is_elastic(options) && !split_host_and_port(node.name).port;
    if (!node.address.empty())
      known.push_back(node);
    else if (!may_be_absent)
      throw cannot_resolve(source, node.name);
  }
  check_addresses(known, source);
}

// The user typed the command on a host that is not the first of the list, such as a login node.
Error starts_from_elsewhere(const NamedNode& first, const HostFacts& host) {
  return bad_members(
      fmt::format(
          "fleetrun starts the other nodes from the first one, {}, and this host is {}, with the addresses {}",
          first.name, host.name, fmt::join(host.addresses, ", ")),
      fmt::format("type the same command on {0}: ssh {0} \"cd '$PWD' && fleetrun ...\"", first.name));
}

int place_by_rank(const LaunchOptions& options, const std::vector<NamedNode>& nodes, const HostFacts& host) {
  const int rank = *options.node_rank.value;
  if (rank >= std::ssize(nodes))
    throw bad_members(
        fmt::format("{} is {}, but there are {} nodes", options.node_rank.source, rank, nodes.size()));
  const NamedNode& node = nodes[static_cast<std::size_t>(rank)];
  if (node.address.empty()) throw cannot_resolve(source_of(options.ips, "--ips"), node.name);
  const bool is_elsewhere = !is_here(node.address, host);
  if (is_elsewhere && options.node_rank.source == kPlaceOfStarter) throw starts_from_elsewhere(node, host);
  if (is_elsewhere)
    throw bad_members(fmt::format("{} is {}, but node {} is {}, which is not an address of this host ({})",
                                  options.node_rank.source, rank, rank, node.name,
                                  fmt::join(host.addresses, ", ")));
  return rank;
}

int place_by_host(const LaunchOptions& options, const std::vector<NamedNode>& nodes) {
  const auto found = std::find_if(nodes.begin(), nodes.end(), [&](const NamedNode& node) {
    return node.name == *options.host.value || node.address == *options.host.value;
  });
  if (found == nodes.end())
    throw bad_members(fmt::format("{} is {}, which {} does not list", options.host.source,
                                  *options.host.value, source_of(options.ips, "--ips")));
  if (found->address.empty()) throw cannot_resolve(options.host.source, found->name);
  return static_cast<int>(found - nodes.begin());
}

int place_by_address(const LaunchOptions& options, const std::vector<NamedNode>& nodes,
                     const HostFacts& host) {
  const std::string source = source_of(options.ips, "--ips");
  if (is_loopback(nodes.front().address))
    throw bad_members(fmt::format("{} lists loopback addresses only, so each of them is this host", source),
                      "for a rehearsal on one host, start each node with its --node_rank");
  std::vector<int> own;
  for (std::size_t i = 0; i < nodes.size(); ++i)
    if (is_here(nodes[i].address, host)) own.push_back(static_cast<int>(i));
  if (own.empty())
    throw bad_members(
        fmt::format("{} lists no address of this host ({})", source, fmt::join(host.addresses, ", ")),
        "a node finds its place in the list by its own addresses");
  if (own.size() > 1)
    throw bad_members(
        fmt::format("{} lists several addresses of this host: nodes {}", source, fmt::join(own, ", ")),
        "--node_rank says which of them this node is");
  return own.front();
}

int place_in_list(const LaunchOptions& options, const std::vector<NamedNode>& nodes, const HostFacts& host) {
  if (options.node_rank.value) return place_by_rank(options, nodes, host);
  if (options.host.value) return place_by_host(options, nodes);
  return place_by_address(options, nodes, host);
}

// The first node always has ranks: it coordinates the run.
void check_spares(const LaunchOptions& options, int nodes) {
  if (options.spares.value >= nodes)
    throw bad_members(
        fmt::format("{} is {}, but there are {} nodes", options.spares.source, options.spares.value, nodes),
        "at least one node must have ranks");
}

int least_nodes(const LaunchOptions& options, int nodes) {
  return std::min(options.nnodes.value ? options.nnodes.value->least : nodes, nodes - options.spares.value);
}

// Of the port where the nodes meet.
std::string flag_of_port(const LaunchOptions& options) {
  if (options.master.value) return source_of(options.master, "--master") + "=HOST:PORT";
  if (options.rdzv_endpoint.value && split_list(options.ips.value).size() < 2)
    return source_of(options.rdzv_endpoint, "--rdzv_endpoint") + "=HOST:PORT";
  return "--master_port";
}

// The port where the first of --ips waits: --master and --master_addr may only repeat its address.
Endpoint meeting_of_list(const LaunchOptions& options, const NamedNode& first) {
  Endpoint meeting = {first.address, options.master_port.value.value_or(kMeetingPort)};
  const auto& master = options.master.value;
  const auto& named = master ? std::optional(master->host) : options.master_addr.value;
  if (named && *named != first.name && *named != first.address)
    throw bad_members(fmt::format("{} names {}, but the first node of {} is {}",
                                  master ? options.master.source : options.master_addr.source, *named,
                                  source_of(options.ips, "--ips"), first.name));
  if (master) meeting.port = master->port;
  return meeting;
}

Membership members_of_list(const LaunchOptions& options, const std::vector<NamedNode>& nodes,
                           const HostFacts& host) {
  const std::string source = source_of(options.ips, "--ips");
  const int count = static_cast<int>(nodes.size());
  if (options.nnodes.value && options.nnodes.value->most != count)
    throw bad_members(fmt::format("{} is {}, but {} lists {} nodes", options.nnodes.source,
                                  show_value(*options.nnodes.value), source, count));
  check_names(options, nodes, source);
  check_spares(options, count);
  Membership members = {.nodes = count,
                        .least = least_nodes(options, count),
                        .spares = options.spares.value,
                        .node_rank = place_in_list(options, nodes, host),
                        .host = {},
                        .address = {},
                        .meeting = meeting_of_list(options, nodes.front()),
                        .first = nodes.front(),
                        .may_be_first = false,
                        .names = {}};
  members.port_flag = flag_of_port(options);
  const NamedNode& own = nodes[static_cast<std::size_t>(*members.node_rank)];
  members.host = own.name;
  members.address = own.address;
  members.may_be_first = members.node_rank == 0;
  for (const NamedNode& node : nodes) members.names.push_back(node.name);
  members.listed = nodes;
  return members;
}

std::optional<Endpoint> named_meeting(const LaunchOptions& options) {
  if (options.master.value) return options.master.value;
  if (const auto& point = options.rdzv_endpoint.value)
    return Endpoint{point->host, point->port == 0 ? kTorchrunPort : point->port};
  if (!options.master_addr.value) return std::nullopt;
  return Endpoint{*options.master_addr.value, options.master_port.value.value_or(kMeetingPort)};
}

// "": not given, or a name that means nothing here.
std::string address_of_host(const LaunchOptions& options, const Endpoint& meeting) {
  if (!options.host.value) return "";
  if (meeting.host.empty()) return resolve_name(*options.host.value);
  const bool six = is_ipv6(meeting.host);
  std::string address = resolve_name(*options.host.value, six ? AF_INET6 : AF_INET);
  if (address.empty() && !resolve_name(*options.host.value).empty())
    throw bad_members(fmt::format("{} is {}, which has no {} address, but the nodes meet at {}",
                                  options.host.source, *options.host.value, six ? "IPv6" : "IPv4",
                                  meeting.describe()));
  return address;
}

std::string meeting_source(const LaunchOptions& options) {
  if (options.master.value) return options.master.source;
  return options.rdzv_endpoint.value ? options.rdzv_endpoint.source : options.master_addr.source;
}

// Debian's /etc/hosts gives the name of the host an address of loopback. Nodes that are all on this host can meet there.
std::string warn_of_loopback(const std::string& name, const std::string& address, const std::string& source) {
  if (!is_loopback(address) || name == address || name.starts_with("localhost")) return "";
  return fmt::format(
      "{0} names {1}, which is {2} on this host: nodes on other hosts cannot reach that; give its address instead, or "
      "correct the line of {1} in /etc/hosts",
      source, name, address);
}

Membership members_of_master(const LaunchOptions& options, const HostFacts& host) {
  const int nodes = options.nnodes.value->most;
  const std::optional<Endpoint> meeting = named_meeting(options);
  const bool given_as_flag = options.nnodes.origin == Origin::flag;
  if (!meeting)
    throw bad_members(
        fmt::format("{} is {}, but nothing says where the nodes meet", options.nnodes.source,
                    show_value(*options.nnodes.value)),
        fmt::format("--master=HOST:PORT names the first node; --ips lists all of them (docs/many-hosts.md){}",
                    given_as_flag ? "" : "; --nnodes=1 starts a run of this host alone"));
  const NamedNode first =
      with_own_address_first(with_given_address_first(resolve_node(meeting->host), options), host);
  const std::string& address = first.address;
  const std::optional<int> rank = options.node_rank.value;
  if (address.empty() && (!is_elastic(options) || rank == 0))
    throw bad_members(fmt::format("this host cannot resolve {}, where the nodes meet", meeting->host));
  if (!address.empty()) check_reach(address, meeting_source(options), meeting->host);
  const bool here = is_here(address, host);
  if (rank && *rank >= nodes)
    throw bad_members(
        fmt::format("{} is {}, but there are {} nodes", options.node_rank.source, *rank, nodes));
  if (rank == 0 && !here)
    throw bad_members(
        fmt::format("{} is 0, but the nodes meet at {}, which is not an address of this host ({})",
                    options.node_rank.source, meeting->describe(), fmt::join(host.addresses, ", ")),
        "the nodes meet at an address of node 0");
  check_spares(options, nodes);
  return {.nodes = nodes,
          .least = least_nodes(options, nodes),
          .spares = options.spares.value,
          .node_rank = rank,
          .host = options.host.value.value_or(here && !first.others.empty() ? meeting->host : ""),
          .address = options.host.value || !here || first.others.empty()
                         ? address_of_host(options, {address, meeting->port})
                         : address,
          .meeting = {address, meeting->port},
          .port_flag = flag_of_port(options),
          .first = first,
          .may_be_first = here && rank.value_or(0) == 0,
          .names = {},
          .warning = warn_of_loopback(meeting->host, address, meeting_source(options))};
}

}  // namespace

std::string Membership::name_of(int node) const {
  if (names.empty()) return fmt::format("node {}", node);
  return fmt::format("node {} ({})", node, names.at(static_cast<std::size_t>(node)));
}

std::vector<Endpoint> Membership::meetings() const {
  if (may_be_first) return {meeting};
  std::vector<Endpoint> all;
  for (const std::string& host_address : addresses_of(first)) all.push_back({host_address, meeting.port});
  return all;
}

bool asks_for_several_nodes(const LaunchOptions& options) {
  return split_list(options.ips.value).size() > 1 || options.nnodes.value.value_or(NodeRange()).most > 1;
}

void note_flags_of_several_nodes(LaunchOptions& options) {
  const auto note = [&](const auto& setting, const char* runs) {
    if (setting.origin == Origin::flag)
      options.notes.push_back(fmt::format("{} has no effect on {}", setting.source, runs));
  };
  if (!asks_for_several_nodes(options)) {
    note(options.spares, "a run with one node");
    note(options.elastic_timeout, "a run with one node");
    note(options.rejoin_at, "a run with one node");
  } else if (!is_elastic(options)) {
    constexpr const char* kNotElastic = "a run that is not elastic (--nnodes=MIN:MAX, with MIN below MAX)";
    note(options.elastic_timeout, kNotElastic);
    note(options.rejoin_at, kNotElastic);
  } else if (split_list(options.ips.value).size() > 1) {
    note(options.rejoin_at, "a run with --ips: a node asks all addresses of that list");
  }
  const std::string flag = flag_of_port(options);
  if (asks_for_several_nodes(options) && options.master_port.origin == Origin::flag &&
      flag != "--master_port")
    options.notes.push_back(fmt::format("{} has no effect beside {}", options.master_port.source, flag));
}

bool is_elastic(const LaunchOptions& options) {
  const NodeRange nodes = options.nnodes.value.value_or(NodeRange());
  return asks_for_several_nodes(options) && (nodes.least < nodes.most || options.spares.value > 0);
}

int most_restarts(const LaunchOptions& options) {
  const bool chosen = options.max_restart.origin != Origin::fallback;
  return is_elastic(options) && !chosen ? kElasticRestarts : options.max_restart.value;
}

bool may_start_again(const LaunchOptions& options) {
  return most_restarts(options) > 0 || is_elastic(options);
}

std::vector<std::string> needed_names(const LaunchOptions& options) {
  std::vector<std::string> listed = split_list(options.ips.value);
  const auto is_no_name = [](const std::string& name) {
    return name.empty() || split_host_and_port(name).port;
  };
  if (std::ranges::any_of(listed, is_no_name)) return {};  // an error says so
  const std::optional<int> rank = options.node_rank.value;
  if (listed.size() > 1) {
    if (!is_elastic(options)) return listed;
    if (!rank || *rank >= std::ssize(listed)) return {};
    return {listed[static_cast<std::size_t>(*rank)]};
  }
  const std::optional<Endpoint> meeting = named_meeting(options);
  if (!meeting || (is_elastic(options) && rank.value_or(0) != 0)) return {};
  return {meeting->host};
}

std::vector<NamedNode> resolve_names(const LaunchOptions& options) {
  return resolve_all(split_list(options.ips.value));
}

Membership resolve_membership(const LaunchOptions& options, std::vector<NamedNode> nodes,
                              const HostFacts& host) {
  for (NamedNode& node : nodes)
    node = with_own_address_first(with_given_address_first(std::move(node), options), host);
  if (nodes.size() > 1) return members_of_list(options, nodes, host);
  if (nodes.size() == 1 && options.ips.origin != Origin::fallback && !named_meeting(options))
    throw bad_members(
        fmt::format("{} is {}, but {} lists only {}", options.nnodes.source,
                    show_value(*options.nnodes.value), source_of(options.ips, "--ips"), nodes.front().name),
        fmt::format("list all nodes in --ips, or give --master={}:{} instead of --ips",
                    bracketed(nodes.front().name), kMeetingPort));
  return members_of_master(options, host);
}

}  // namespace fleetrun::launch
