// The part of a NodeSession that knows where the other nodes may be: at the addresses of their names, which may change while nodes look
// for each other.
#include <sys/socket.h>

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/system/socket_address.h"
#include "launch/loop/listen_on.h"
#include "launch/nodes/node_session.h"
#include "launch/nodes/try_to_connect.h"

namespace fleetrun::launch {
namespace {

constexpr auto kReachPatience = std::chrono::seconds(1);

bool leads_here(const std::string& address) {
  const auto parsed = SocketAddress::from(Endpoint{address, 0});
  return is_loopback(address) || (parsed && parsed->is_of_this_host());
}

}  // namespace

std::string NodeSession::place_of_first() const {
  std::vector<std::string> places;
  for (const Endpoint& meeting : options_.members.meetings()) places.push_back(meeting.describe());
  if (places.empty()) return name_of_first();
  return fmt::format("{} at {}", name_of_first(), fmt::join(places, " or "));
}

// Who comes may reach another one of this host's addresses than the one at which it listens first. Those that are not its own are left out.
void NodeSession::listen_at_others(const std::vector<std::string>& addresses, const Endpoint& first) {
  for (const std::string& address : addresses) {
    Endpoint place = {address, first.port};
    if (address != first.host) server_->listen_also(listen_on(place, SOMAXCONN));
  }
}

// An elastic run may go on at any node.
void NodeSession::keep_up_addresses() {
  std::vector<std::string> names = {options_.members.first.name};
  if (is_elastic()) names.insert(names.end(), options_.members.names.begin(), options_.members.names.end());
  if (known_)
    for (const NodePlace& node : known_->nodes) names.push_back(node.address);
  std::ranges::sort(names);
  names.erase(std::unique(names.begin(), names.end()), names.end());
  book_.keep_up(std::move(names), [this] { use_new_addresses(); });
}

// Of names, while this node looks for the first one or for another one that takes over.
void NodeSession::use_new_addresses() {
  Membership& members = options_.members;
  const std::vector<std::string> found = book_.of(members.first.name);
  if (!found.empty()) {
    members.first = {members.first.name, found.front(), {found.begin() + 1, found.end()}};
    if (!members.may_be_first) members.meeting.host = found.front();
  }
  if (taking_over_ || over_ || link_->is_open()) return;
  if (may_search()) ask_others();
  link_to_first();
}

// With --master only the meeting point is known, which may be that of a node that has taken over, and what the options name.
std::vector<Endpoint> NodeSession::possible_successors() const {
  const Membership& members = options_.members;
  if (!members.names.empty()) return endpoints_of_others();
  std::vector<Endpoint> nodes = members.meetings();
  for (const std::string& address : options_.possible_successors)
    nodes.push_back({address, members.meeting.port});
  return nodes;
}

std::vector<Endpoint> NodeSession::endpoints_of_others() const {
  const Membership& members = options_.members;
  std::vector<Endpoint> others;
  for (int node = 0; node < std::ssize(members.names); ++node)
    if (node != members.node_rank)
      for (const std::string& address : book_.of(members.names[static_cast<std::size_t>(node)]))
        others.push_back({address, members.meeting.port});
  return others;
}

void NodeSession::ask_others() {
  for (const Endpoint& node : possible_successors()) search_.ask(node);
}

std::vector<Endpoint> NodeSession::endpoints_of(const NodePlace& node) const {
  std::vector<Endpoint> endpoints;
  for (const std::string& address : book_.of(node.address))
    endpoints.push_back({address, options_.members.meeting.port});
  return endpoints;
}

Endpoint NodeSession::own_endpoint(const Placed& placed) const {
  const std::string& own = placed.nodes.at(static_cast<std::size_t>(placed.node_rank)).address;
  const Membership& members = options_.members;
  return {members.address.empty() ? own : members.address, members.meeting.port};
}

std::string NodeSession::own_address() const { return own_endpoint(*placed_).host; }

std::vector<std::string> NodeSession::own_addresses() const {
  std::vector<std::string> all;
  if (options_.members.may_be_first) all = addresses_of(options_.members.first);
  for (const std::string& address :
       book_.of(placed_->nodes.at(static_cast<std::size_t>(placed_->node_rank)).address))
    if (std::ranges::find(all, address) == all.end()) all.push_back(address);
  return all;
}

std::vector<std::string> NodeSession::reached_of_first() const {
  if (is_first() || first_at_.empty()) return {};
  const Endpoint& meeting = link_->address();
  const bool is_on_same_host = leads_here(meeting.host);
  std::vector<std::string> reached = {meeting.host};
  std::vector<Endpoint> others;
  for (const std::string& address : first_at_) {
    const bool is_own = leads_here(address);  // each host may have the address of Docker's bridge
    if (is_own && is_on_same_host) reached.push_back(address);
    if (!is_own && address != meeting.host) others.push_back({address, meeting.port});
  }
  const std::vector<std::string> problems = try_to_connect(others, kReachPatience);
  for (std::size_t i = 0; i < others.size(); ++i)
    if (problems[i].empty()) reached.push_back(others[i].host);
  return reached;
}

}  // namespace fleetrun::launch
