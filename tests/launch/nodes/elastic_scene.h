// A Coordinator of an elastic run in virtual time, for tests.
#pragma once
#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "launch/nodes/coordinator.h"
#include "launch/nodes/coordinator_scene.h"

namespace fleetrun::launch::coordinator_scene {

inline CoordinatorOptions range(int least, int most, int spares = 0) {
  return {.nodes = most, .least = least, .spares = spares, .run_id = "run", .restart = {.most = 3}};
}

inline Ended ended(int attempt, bool finished = false) {
  return {
      .attempt = attempt, .failure = {}, .ranks = JsonValue::list({}), .roll_call = {}, .finished = finished};
}

// Nodes with one rank each. Peer N + 1 claims number N.
struct ElasticScene : Scene {
  using Scene::Scene;

  void join_all(int nodes) {
    for (int node = 0; node < nodes; ++node) say(static_cast<PeerId>(node) + 1, join(1, node));
  }
  void be_ready(const std::vector<PeerId>& peers, int attempt) {
    for (const PeerId peer : peers) say(peer, ready({static_cast<std::uint16_t>(6070 + peer)}, attempt));
  }
  void end(const std::vector<PeerId>& peers, int attempt) {
    for (const PeerId peer : peers) say(peer, ended(attempt));
  }
  void wake() {
    REQUIRE(coordinator.wake_at());
    now = std::max(now, *coordinator.wake_at());
    take(coordinator.woke(now));
  }
  template <typename Message>
  int count(PeerId peer) {
    return static_cast<int>(std::ranges::count_if(
        told[peer], [](const FromFirst& message) { return std::holds_alternative<Message>(message); }));
  }
};

// That run attempt 0 on peers 1 to `nodes`.
inline ElasticScene running(const CoordinatorOptions& options, int nodes) {
  ElasticScene scene(options);
  scene.join_all(nodes);
  if (nodes < options.most_running()) {
    scene.now += options.elastic_timeout;
    scene.take(scene.coordinator.woke(scene.now));
  }
  for (int node = 0; node < nodes; ++node) scene.be_ready({static_cast<PeerId>(node) + 1}, 0);
  REQUIRE(scene.last<Start>(1) != nullptr);
  return scene;
}

}  // namespace fleetrun::launch::coordinator_scene
