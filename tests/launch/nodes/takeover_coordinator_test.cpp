// The Coordinator of a node that takes over, and of a first node that may be cut off.
#include <doctest/doctest.h>

#include <csignal>
#include <utility>

#include "launch/nodes/coordinator.h"
#include "launch/nodes/coordinator_scene.h"

namespace fleetrun::launch::takeover_coordinator_test {
namespace {

using namespace std::chrono_literals;
using coordinator_scene::Scene;

constexpr auto kMeet = 3s;

CoordinatorOptions range(int least, int most) {
  return {.nodes = most, .least = least, .run_id = "run", .restart = {.most = 3}};
}

// After the loss of the first of `nodes` nodes.
CoordinatorOptions successor(int nodes, int least = 1, EarlierRestarts restarts = {}) {
  CoordinatorOptions options = range(least, nodes);
  const NodeFailure loss = {
      .cause = "node_lost", .line = "lost node 0", .block = "lost node 0\n", .exit_code = 75};
  options.takes_over = {.loss = loss,
                        .detection = 4s,
                        .survivors = nodes - 1,
                        .restarts = std::move(restarts),
                        .terms = Scene::join().terms,
                        .meet = kMeet};
  return options;
}

// Of a node that saw attempt 0 start.
Join member(int nodes, int rank, bool coordinates = false) {
  Join join = Scene::join(1, rank);
  join.coordinates = coordinates;
  join.seen.started = {0, nodes, rank};
  return join;
}

TEST_CASE("the next attempt begins as soon as all nodes that are left have met") {
  Scene scene(successor(4, 2, {1}));
  scene.say(3, member(4, 3));
  scene.say(1, member(4, 1, true));
  CHECK(scene.told[1].empty());
  scene.say(2, member(4, 2));
  CHECK(scene.rank_of(1) == 0);
  CHECK(scene.rank_of(2) == 1);
  CHECK(scene.rank_of(3) == 2);
  REQUIRE(scene.last<Again>(3) != nullptr);
  CHECK(scene.last<Again>(3)->attempt == 1);
  CHECK(scene.last<Again>(3)->restarts == 2);  // one before, and this one
  for (const PeerId peer : {1, 2, 3}) scene.say(peer, Scene::ready({6070}, 1));
  REQUIRE(scene.last<Start>(2) != nullptr);
  const StandStill& stand_still = scene.coordinator.stand_stills().at(0);
  CHECK(stand_still.why == "lost node 0");
  CHECK(stand_still.first_node == "10.0.0.9, host");
  CHECK(stand_still.detection == 4s);
}

TEST_CASE(
    "with --restart_window, a node that takes over counts only the restarts inside it, and says how old they are") {
  const auto take_over = [](const EarlierRestarts& restarts) {
    CoordinatorOptions options = successor(3, 1, restarts);
    options.restart.window = 1h;
    Scene scene(options);
    scene.say(1, member(3, 1, true));
    scene.say(2, member(3, 2));
    return scene;
  };
  using coordinator_scene::kStart;
  Scene recent = take_over({3, {kStart - 50min, kStart - 40min, kStart - 59min}});
  CHECK(recent.last<Over>(1) != nullptr);
  Scene old = take_over({3, {kStart - 61min, kStart - 40min, kStart - 1min}});
  REQUIRE(old.last<Again>(1) != nullptr);
  CHECK(old.last<Again>(1)->restarts == 4);
  CHECK(take_over({3, {}}).last<Again>(1) != nullptr);
  const auto places = std::ranges::find_if(
      old.told[2], [](const FromFirst& message) { return std::holds_alternative<Places>(message); });
  REQUIRE(places != old.told[2].end());
  const auto in_ns = [](Clock::duration age) { return age / std::chrono::nanoseconds(1); };
  CHECK(std::get<Places>(*places).restarts == 4);
  CHECK(std::get<Places>(*places).restart_ages == std::vector<std::int64_t>{in_ns(40min), in_ns(1min), 0});
}

TEST_CASE("places name the ages of at most the newest thousand restarts") {
  CoordinatorOptions options = range(1, 2);
  options.restart = {.most = 2000, .window = 1h};
  options.takes_over = {.loss = {}, .restarts = {1500, {}}, .terms = Scene::join().terms, .meet = kMeet};
  for (int i = 0; i < 1500; ++i)
    options.takes_over->restarts.began.push_back(coordinator_scene::kStart - std::chrono::seconds(1500 - i));
  Scene scene(options);
  scene.say(1, member(2, 1, true));
  scene.say(2, member(2, 0));
  const auto places = std::ranges::find_if(
      scene.told[1], [](const FromFirst& message) { return std::holds_alternative<Places>(message); });
  REQUIRE(places != scene.told[1].end());
  CHECK(std::get<Places>(*places).restart_ages.size() == kMostRestartAges);
  CHECK(std::get<Places>(*places).restart_ages.back() == 0);
}

TEST_CASE("more than half of the nodes go on without those that do not come in time") {
  Scene scene(successor(5));
  for (const int rank : {1, 2, 4}) scene.say(static_cast<PeerId>(rank), member(5, rank, rank == 1));
  CHECK(scene.last<Again>(4) == nullptr);
  scene.now += kMeet;
  scene.take(scene.coordinator.woke(scene.now));
  CHECK(scene.last<Again>(4) != nullptr);
}

TEST_CASE("half of the nodes without the first one end with 75 and say why") {
  Scene scene(successor(4));
  for (const int rank : {1, 3}) scene.say(static_cast<PeerId>(rank), member(4, rank, rank == 1));
  scene.now += kMeet;
  scene.take(scene.coordinator.woke(scene.now));
  REQUIRE(scene.last<Over>(3) != nullptr);
  CHECK(scene.last<Over>(3)->failure->exit_code == 75);
  CHECK(
      scene.last<Over>(3)->failure->line ==
      "lost node 0; only 2 of the 4 nodes of attempt 0 are here, and more than half of them must be, because the "
      "others may go on");
}

TEST_CASE("a fleetrun that was started again does not count, and gets a place when enough others are there") {
  Scene scene(successor(4));
  scene.say(1, member(4, 1, true));
  scene.say(2, member(4, 2));
  scene.say(9, Scene::join(1, 0));  // the old first node comes back
  scene.now += kMeet - 1s;
  scene.take(scene.coordinator.woke(scene.now));
  CHECK(scene.last<Over>(1) == nullptr);
  scene.say(3, member(4, 3));
  CHECK(scene.rank_of(1) == 0);
  CHECK(scene.rank_of(9) == 1);  // its number in the list, behind the node that coordinates
  CHECK(scene.last<Again>(9) == nullptr);
  REQUIRE(scene.last<Places>(9) != nullptr);
  CHECK(scene.last<Places>(9)->attempt == 1);
}

TEST_CASE("the number of the next attempt is larger than all that a node was ready for") {
  Scene scene(successor(3));
  Join ready = member(3, 2);
  ready.seen.ready_for = {{1, 3, 2}, {2, 3, 2}};
  scene.say(2, ready);
  scene.say(1, member(3, 1, true));
  REQUIRE(scene.last<Again>(1) ==
          nullptr);  // attempt 2 has three nodes, and may have started on the other two
  scene.now += kMeet;
  scene.take(scene.coordinator.woke(scene.now));
  REQUIRE(scene.last<Over>(1) != nullptr);

  Scene both(successor(3));
  Join other = member(3, 1, true);
  other.seen.ready_for = {{2, 3, 1}};
  both.say(2, Join(ready));
  both.say(1, other);
  CHECK(both.last<Over>(1) == nullptr);
}

TEST_CASE("what somebody asked for while the first node was lost ends the run") {
  const auto end_of = [](const Ended& ended) {
    Scene scene(successor(4));
    scene.say(1, member(4, 1, true));
    scene.say(2, member(4, 2));
    scene.say(2, ended);
    CHECK(scene.last<Over>(1) == nullptr);  // node 3 would not hear of it
    scene.say(3, member(4, 3));
    REQUIRE(scene.last<Over>(3) != nullptr);
    REQUIRE(scene.last<Over>(1) != nullptr);
    REQUIRE(scene.last<Over>(1)->failure);
    return *scene.last<Over>(1)->failure;
  };
  Ended asked = {.attempt = 0, .failure = {}, .ranks = JsonValue::list({}), .no_restart = true};
  CHECK(end_of(asked).line == "--timeout has passed while the ranks were starting again");
  CHECK(end_of(asked).exit_code == 124);
  asked.asked_by = SIGINT;
  CHECK(end_of(asked).line == "stopped by SIGINT (2) while the ranks were starting again");
  CHECK(end_of(asked).exit_code == 130);
  {
    Scene scene(successor(4));
    scene.say(1, member(4, 1, true));
    scene.say(2, member(4, 2));
    scene.say(2, Failed{0, Scene::failure(1, "stopped by SIGTERM", "stopped")});
    scene.now += kMeet;
    scene.take(scene.coordinator.woke(scene.now));
    REQUIRE(scene.last<Over>(1) != nullptr);
    CHECK(scene.last<Over>(1)->failure->line ==
          "stopped by SIGTERM; 1 node did not hear of it, and may go on");
  }
}

TEST_CASE("a quorum of fewer than MIN nodes waits for --elastic_timeout, and all nodes say so") {
  Scene scene(successor(5, 4));
  for (const int rank : {1, 2, 3}) scene.say(static_cast<PeerId>(rank), member(5, rank, rank == 1));
  scene.now += kMeet;
  scene.take(scene.coordinator.woke(scene.now));
  for (const PeerId peer : {1, 2, 3}) {
    REQUIRE(scene.told[peer].size() == 1);
    REQUIRE(scene.last<Note>(peer) != nullptr);
    CHECK(scene.last<Note>(peer)->line == "lost node 0; waiting 30 s for 1 node to join (--elastic_timeout)");
    CHECK(scene.last<Note>(peer)->missing == "1 node");
  }
  scene.now += 30s;
  scene.take(scene.coordinator.woke(scene.now));
  REQUIRE(scene.last<Over>(1) != nullptr);
  CHECK(scene.last<Over>(1)->failure->block ==
        "lost node 0\nfleetrun: 3 nodes are left, and the run needs 4 (--nnodes)\n");
}

// Attempt 0 runs on peers 1 to 4, peer 1 is the first node.
Scene four(int least = 1) {
  Scene scene(range(least, 4));
  for (const int rank : {0, 1, 2, 3}) scene.say(static_cast<PeerId>(rank) + 1, Scene::join(1, rank));
  for (const PeerId peer : {1, 2, 3, 4}) scene.say(peer, Scene::ready({6070}, 0));
  return scene;
}

void end_ranks(Scene& scene, const std::vector<PeerId>& peers) {
  for (const PeerId peer : peers)
    scene.say(peer, Ended{.attempt = 0, .failure = {}, .ranks = JsonValue::list({}), .roll_call = {}});
}

TEST_CASE("a first node that hears nothing from more than half of the nodes ends the run") {
  Scene scene = four();
  for (const PeerId peer : {2, 3, 4}) scene.lose(peer, 4s);
  end_ranks(scene, {1});
  REQUIRE(scene.last<Over>(1) != nullptr);
  CHECK(scene.last<Over>(1)->failure->exit_code == 75);
  CHECK(scene.last<Over>(1)->failure->line.ends_with(
      "only 1 of the 4 nodes of attempt 0 is here, and at least half of them must be, because the others may go on"));
}

TEST_CASE(
    "the first node goes on with half of the nodes, and alone when the fleetruns of the others have ended") {
  Scene half = four();
  for (const PeerId peer : {2, 3}) half.lose(peer, 4s);
  end_ranks(half, {1, 4});
  CHECK(half.last<Again>(1) != nullptr);

  Scene alone = four();
  for (const PeerId peer : {2, 3, 4})
    alone.take(alone.coordinator.lost(peer, "it left", alone.now, alone.now, true));
  end_ranks(alone, {1});
  CHECK(alone.last<Again>(1) != nullptr);
}

TEST_CASE("a node that was ready for an attempt of another first node is refused") {
  Scene scene = four();
  scene.lose(4, 4s);
  end_ranks(scene, {1, 2, 3});
  Join join = member(4, 3);
  join.seen.ready_for = {{7, 2, 1}};
  scene.say(9, join);
  REQUIRE(scene.last<Over>(9) != nullptr);
  CHECK(scene.last<Over>(9)->failure->line ==
        "it was ready for attempt 7 of another first node; this is attempt 1");
}

TEST_CASE("a node that waits learns the places of the others") {
  Scene scene = four();
  scene.say(9, Scene::join(1));
  CHECK(scene.rank_of(9) == -1);
  const auto places = std::ranges::find_if(
      scene.told[9], [](const FromFirst& message) { return std::holds_alternative<Places>(message); });
  REQUIRE(places != scene.told[9].end());
  CHECK(std::get<Places>(*places).nodes.size() == 4);
}

}  // namespace
}  // namespace fleetrun::launch::takeover_coordinator_test
