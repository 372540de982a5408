// Another host that waits as the first node of the same run.
#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error/error.h"
#include "launch/nodes/node_session.h"

namespace fleetrun::launch {
namespace {

constexpr std::string_view kOneList =
    "all nodes need the same --ips, in the same order, and different --node_rank";
constexpr int kMostRivals = 256;  // hosts that the first node asks whether they are first, too

}  // namespace

// With another order of --ips, or the same --node_rank, another host may wait as the first node, too, and both would wait for ever or begin
// without each other.
void NodeSession::look_for_rivals() {
  const Membership& members = options_.members;
  if (std::ssize(members.names) > kMostRivals) return;
  for (const Endpoint& other : endpoints_of_others()) {
    if (is_loopback(other.host)) continue;
    const auto place = rivals_.size();
    const auto on_message = [this, other, place](const FromFirst& message) {
      if (const auto* note = std::get_if<Note>(&message))
        on_rival(other, rivals_[place]->local_address(), !note->missing.empty());
    };
    rivals_.push_back(std::make_unique<NodeLink>(
        loop_, std::vector{other}, options_.key,
        NodeLink::Listener{.on_open = [] {}, .on_message = on_message, .on_lost = [](const auto&) {}},
        std::string(kRival) + rival_mark()));
  }
}

// Of the hosts, whatever their order, the program and the job: the same user may have several runs on one host.
std::string NodeSession::rival_mark() const {
  std::vector<std::string> parts;
  for (const std::string& name : options_.members.names) {
    std::vector<std::string> addresses = book_.of(name);  // in another order on each host
    std::erase_if(addresses, is_loopback);                // which only the host itself may see
    parts.push_back(addresses.empty() ? name : *std::ranges::min_element(addresses));
  }
  std::ranges::sort(parts);
  for (const auto& [name, value] : options_.join.terms)
    if (name == "the program" || name == "its arguments" || name == "--job_id") parts.push_back(value);
  const Mac mac = hmac_sha256(options_.key.key, fmt::format("{}", fmt::join(parts, "\n")));
  return fmt::format("{:02x}", fmt::join(mac.begin(), mac.begin() + 8, ""));
}

// A run that has begun there may be another one. If both wait, this node stays for two beats, so that the other one finds it as well, and so that
// two runs at one moment can meet.
void NodeSession::on_rival(const Endpoint& other, const std::string& own_address, bool waits) {
  if (other.host == own_address || placed_) return;  // this host has several addresses
  if (!waits)
    return say_(fmt::format("{} is node 0 of a run that has begun; if that is this run, {}", other.describe(),
                            kOneList));
  rival_wait_.call_at(Clock::now() + 2 * kNodeBeat, [this, other, own_address] {
    if (placed_) return;
    stop_waiting(fmt::format("{} waits as node 0, and so does this node ({}): {}", other.describe(),
                             own_address, kOneList),
                 static_cast<int>(ErrorKind::protocol));
  });
}

}  // namespace fleetrun::launch
