#include "launch/run/tell_first_node.h"

#include <string>
#include <vector>

#include <fmt/format.h>

#include "launch/host/host_facts.h"
#include "launch/loop/event_loop.h"
#include "launch/nodes/node_key.h"
#include "launch/nodes/node_link.h"
#include "launch/nodes/node_messages.h"

namespace fleetrun::launch {
namespace {

constexpr auto kPatience = std::chrono::seconds(2);  // with each address of the first node

NodeFailure cannot_join(const Membership& members, const Error& error) {
  const std::string name = members.node_rank ? members.name_of(*members.node_rank) : probe_host().name;
  const std::string line = fmt::format("{} cannot join: {}", name, error.message());
  return {.cause = "error",
          .line = line,
          .block = fmt::format("fleetrun: {}\n", line),
          .exit_code = error.exit_code()};
}

void tell(const std::vector<Endpoint>& first, const NodeKey& key, const Failed& failed) {
  EventLoop loop;
  bool done = false;
  NodeLink* opened = nullptr;
  NodeLink link(
      loop, first, key,
      {.on_open = [&] { opened->send(failed); },
       .on_message = [&](const FromFirst& message) { done = !std::holds_alternative<Echo>(message); },
       .on_lost = [&](const std::string&) { done = true; }});
  opened = &link;
  Timer deadline(loop);
  deadline.call_at(Clock::now() + kPatience * first.size(), [&] { done = true; });
  while (!done) loop.run_one();
}

}  // namespace

void tell_first_node(const Membership& members, const LaunchOptions& options, const Environment& environment,
                     const Error& error) {
  if (members.may_be_first || options.given_key) return;  // the fleetrun that gave the key watches this one
  try {
    tell(members.meetings(), find_node_key(options, environment),
         {.failure = cannot_join(members, error), .node_rank = members.node_rank, .host = probe_host().name});
  } catch (const Error&) {  // NOLINT(bugprone-empty-catch): the first node cannot be told
  }
}

}  // namespace fleetrun::launch
