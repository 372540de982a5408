// A Coordinator in virtual time, for tests: what the nodes say to it, and what it has told each of them.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "launch/nodes/coordinator.h"

namespace fleetrun::launch::coordinator_scene {

inline const TimePoint kStart = TimePoint() + std::chrono::hours(1);

// What the coordinator has told each node, in order.
struct Scene {
  explicit Scene(const CoordinatorOptions& options) : coordinator(options, kStart) {}
  explicit Scene(int nodes, RestartPolicy restart = {.most = 0}, std::vector<std::string> names = {})
      : coordinator(
            {.nodes = nodes, .run_id = "run", .names = std::move(names), .restart = std::move(restart)},
            kStart) {}

  void take(const Coordinator::Actions& actions) {
    for (const auto& action : actions) {
      if (const auto* tell = std::get_if<Coordinator::Tell>(&action))
        for (const PeerId to : tell->to) told[to].push_back(tell->message);
      if (const auto* drop = std::get_if<Coordinator::Drop>(&action)) dropped.push_back(drop->peer);
    }
  }
  void say(PeerId peer, const FromNode& message) { take(coordinator.on(peer, message, now)); }
  void lose(PeerId peer, Clock::duration silent) {
    take(coordinator.lost(peer, "no answer for 4 s", now - silent, now));
  }

  template <typename Message>
  const Message* last(PeerId peer) {
    return told[peer].empty() ? nullptr : std::get_if<Message>(&told[peer].back());
  }

  int rank_of(PeerId peer) {
    int rank = -1;
    for (const FromFirst& message : told[peer])
      if (const auto* place = std::get_if<Place>(&message)) rank = place->node_rank;
    return rank;
  }

  static Join join(int devices = 2, std::optional<int> rank = {}) {
    Join join = {.address = "10.0.0.9",
                 .host = "host",
                 .node_rank = rank,
                 .device_ids = {},
                 .terms = {{"--timeout", "5"}}};
    for (int i = 0; i < devices; ++i) join.device_ids.push_back({i});
    return join;
  }
  static Ready ready(std::vector<std::uint16_t> ports, int attempt = 0) {
    return {.attempt = attempt, .ports = std::move(ports), .master_port = 99, .store = {{"10.0.0.9", 98}}};
  }
  static NodeFailure failure(std::int64_t at, const std::string& line, const std::string& cause = "exited") {
    return {
        .at = at, .error = 10, .cause = cause, .line = line, .block = line + "\n", .exit_code = 3, .rank = 1};
  }

  // Two nodes, peers 1 and 2, that run.
  void run_two() {
    say(1, join(2, 0));
    say(2, join(1, 1));
    say(1, ready({6070, 6071}));
    say(2, ready({7070}));
  }

  Coordinator coordinator;
  TimePoint now = kStart;
  std::map<PeerId, std::vector<FromFirst>> told;
  std::vector<PeerId> dropped;
};

}  // namespace fleetrun::launch::coordinator_scene
