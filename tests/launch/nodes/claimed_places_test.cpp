// Nodes that say that they have the same number, second starts on one node, and other commands at the meeting point of a run.
#include <doctest/doctest.h>

#include <chrono>

#include <fmt/format.h>

#include "launch/nodes/coordinator_scene.h"

namespace fleetrun::launch::claimed_places_test {
namespace {

using namespace std::chrono_literals;
using coordinator_scene::kStart;
using coordinator_scene::Scene;

TEST_CASE("two nodes that claim one place: the second one is refused") {
  Scene scene(2);
  scene.say(1, Scene::join(1, 0));
  scene.say(2, Scene::join(1, 0));
  REQUIRE(scene.last<Over>(2) != nullptr);
  CHECK(scene.last<Over>(2)->failure->line ==
        "host (10.0.0.9) and host (10.0.0.9) both say that they are node 0");
  CHECK(scene.last<Over>(2)->failure->exit_code == 76);
  CHECK(scene.dropped == std::vector<PeerId>{2});
  CHECK(scene.rank_of(1) == -1);
  CHECK(scene.last<Over>(1) == nullptr);
}

TEST_CASE("hunt 44: two hosts that claim one place of a run with a fixed number of nodes end the run") {
  Scene scene(3);
  scene.say(1, Scene::join(1, 0));
  scene.say(2, Scene::join(1, 1));
  Join other = Scene::join(1, 1);
  other.host = "copy";
  other.terms = {{"--timeout", "6"}};
  scene.say(3, other);
  for (const PeerId peer : {1, 2, 3}) {
    CAPTURE(peer);
    REQUIRE(scene.last<Over>(peer) != nullptr);
    CHECK(scene.last<Over>(peer)->failure->exit_code == 76);
    CHECK(scene.last<Over>(peer)->failure->line ==
          "host (10.0.0.9) and copy (10.0.0.9) both say that they are node 1; the nodes do not agree:\n"
          "  --timeout: 5 on 10.0.0.9, host, 6 on 10.0.0.9, copy");
  }
}

TEST_CASE("hunt 44: nodes that can do without the second of two that claim one place are told about it") {
  for (const bool elastic : {false, true}) {
    CoordinatorOptions options = {.nodes = 3, .run_id = "run", .names = {}, .restart = {}};
    if (elastic) options.least = 2;
    options.without_missing = !elastic;
    options.elastic_timeout = 30s;
    Scene scene(options);
    scene.say(1, Scene::join(1, 0));
    Join one = Scene::join(1, elastic ? 0 : 1), other = one;
    other.host = "copy";
    if (!elastic) scene.say(2, one);
    scene.say(3, other);
    REQUIRE(scene.last<Over>(3) != nullptr);
    CHECK(scene.last<Over>(1) == nullptr);
    REQUIRE(scene.last<Note>(1) != nullptr);
    CHECK(
        scene.last<Note>(1)->line ==
        fmt::format(
            "host (10.0.0.9) and copy (10.0.0.9) both say that they are node {}; the second one cannot join",
            elastic ? 0 : 1));
  }
}

TEST_CASE("hunt 61: a second start on a node that has joined ends nothing but itself") {
  for (const bool knows_number : {true, false}) {
    Scene scene({.nodes = 3, .run_id = "run"});
    Join first = Scene::join(1, 1);
    if (!knows_number) first.node_rank.reset();
    first.host = "beta";
    scene.say(1, Scene::join(1, 0));
    scene.say(2, first);
    Failed failed = {0, Scene::failure(0, "node 1 (b) cannot join: log/ is in use", "error")};
    if (knows_number) failed.node_rank = 1;
    failed.host = "beta";
    scene.say(3, failed);
    CHECK(scene.last<Over>(1) == nullptr);
    REQUIRE(scene.last<Note>(1) != nullptr);
    CHECK(
        scene.last<Note>(1)->line ==
        "node 1 (b) cannot join: log/ is in use; this node has joined already, and the run waits for the others");
  }
}

TEST_CASE(
    "hunt 65: a second start on a node that has not joined yet leaves the first start some seconds to join") {
  for (const bool comes : {true, false}) {
    Scene scene(2, {}, {"10.0.0.1", "10.0.0.2"});
    scene.say(1, Scene::join(1, 0));
    Failed failed = {0, Scene::failure(0, "node 1 (b) cannot join: log/ is in use", "error")};
    failed.failure.exit_code = 73;
    failed.node_rank = 1;
    scene.say(3, failed);
    REQUIRE(scene.last<Note>(1) != nullptr);
    CHECK(scene.last<Note>(1)->line ==
          "node 1 (b) cannot join: log/ is in use; the run waits 5 s for another fleetrun of this node");
    if (comes) scene.say(2, Scene::join(1, 1));
    CHECK((scene.rank_of(2) == 1) == comes);
    if (comes) continue;
    CHECK(scene.coordinator.wake_at() == kStart + 5s);
    scene.take(scene.coordinator.woke(kStart + 5s));
    REQUIRE(scene.last<Over>(1) != nullptr);
    CHECK(scene.last<Over>(1)->failure->line == "node 1 (b) cannot join: log/ is in use");
  }
}

TEST_CASE("hunt 65: all nodes hear of a late node that claims the place of a running one") {
  Scene scene({.nodes = 3, .least = 2, .run_id = "run", .names = {}, .elastic_timeout = 1s, .restart = {}});
  scene.say(1, Scene::join(1, 0));
  scene.say(2, Scene::join(1, 1));
  scene.now += 1s;
  scene.take(scene.coordinator.woke(scene.now));
  scene.say(1, Scene::ready({6070}));
  scene.say(2, Scene::ready({7070}));
  REQUIRE(scene.last<Start>(2) != nullptr);
  Join other = Scene::join(1, 1);
  other.host = "copy";
  scene.say(3, other);
  REQUIRE(scene.last<Note>(3) != nullptr);
  CHECK(
      scene.last<Note>(3)->line ==
      "joined a run in which node 1 (10.0.0.9, host) has claimed the number 1, too; this node waits until that is lost, or starts again without --node_rank");
  for (const PeerId peer : {1, 2}) {
    REQUIRE(scene.last<Note>(peer) != nullptr);
    CHECK(scene.last<Note>(peer)->line ==
          "10.0.0.9, copy claims the place of node 1 (10.0.0.9, host), and waits until that is lost");
  }
}

Join doctor_on(int rank, const std::string& kind = "yes") {
  Join join = Scene::join(1, rank);
  join.terms = {{"fleetrun doctor", kind}};
  return join;
}

TEST_CASE("hunt 71: a doctor that meets a run which has begun hears only that") {
  Scene scene({.nodes = 3, .least = 1, .run_id = "run", .names = {}, .elastic_timeout = 1s, .restart = {}});
  scene.say(1, Scene::join(1, 0));
  scene.now += 1s;
  scene.take(scene.coordinator.woke(scene.now));
  scene.say(1, Scene::ready({6070}));
  scene.say(2, doctor_on(1));
  REQUIRE(scene.last<Over>(2) != nullptr);
  CHECK(scene.last<Over>(2)->failure->line ==
        "10.0.0.9, host takes part in a run, and 10.0.0.9, host runs fleetrun doctor");
}

TEST_CASE("hunt 68: a doctor does not end a run that waits for its node, or for another one") {
  Scene scene(3);
  scene.say(1, Scene::join(1, 0));
  scene.say(2, doctor_on(1));
  REQUIRE(scene.last<Over>(2) != nullptr);
  scene.say(3, Scene::join(1, 1));
  Join elsewhere = doctor_on(1);
  elsewhere.host = "copy";
  scene.say(4, elsewhere);
  REQUIRE(scene.last<Over>(4) != nullptr);
  for (const PeerId peer : {1, 3}) CHECK(scene.last<Over>(peer) == nullptr);
}

TEST_CASE("hunt 74: a node of a run that meets a doctor is told to try again") {
  Scene scene(2);
  scene.say(1, doctor_on(0));
  scene.say(2, Scene::join(1, 1));
  REQUIRE(scene.last<Note>(2) != nullptr);
  CHECK(scene.last<Note>(2)->come_again);
  CHECK(
      scene.last<Note>(2)->line ==
      "10.0.0.9, host runs fleetrun doctor, and 10.0.0.9, host takes part in a run; this node waits until that is done");
  CHECK(scene.dropped == std::vector<PeerId>{2});
  CHECK(scene.last<Over>(1) == nullptr);
}

TEST_CASE("hunt 77: a run that has begun, or is over, tells a doctor what it is") {
  Scene scene(1);
  scene.say(1, Scene::join(1, 0));
  scene.say(1, Scene::ready({6070}));
  scene.say(2, doctor_on(1));
  REQUIRE(scene.last<Over>(2) != nullptr);
  CHECK(scene.last<Over>(2)->failure->line ==
        "10.0.0.9, host takes part in a run, and 10.0.0.9, host runs fleetrun doctor");
}

TEST_CASE("hunt 77: the preflight of an elastic run goes on without a node that comes without it") {
  Scene scene({.nodes = 3, .least = 2, .run_id = "doctor", .names = {}, .restart = {}});
  scene.say(1, doctor_on(0, "preflight"));
  scene.say(2, Scene::join(1, 1));
  REQUIRE(scene.last<Over>(2) != nullptr);
  CHECK(scene.last<Over>(2)->failure->exit_code == 76);
  CHECK(scene.last<Over>(1) == nullptr);
}

TEST_CASE("hunt 74: --preflight on the first node alone ends all nodes") {
  Scene scene(2);
  scene.say(1, doctor_on(0, "preflight"));
  scene.say(2, Scene::join(1, 1));
  for (const PeerId peer : {1, 2}) {
    REQUIRE(scene.last<Over>(peer) != nullptr);
    CHECK(scene.last<Over>(peer)->failure->exit_code == 76);
    CHECK(
        scene.last<Over>(peer)->failure->line ==
        "10.0.0.9, host examines the nodes before a run (--preflight), and 10.0.0.9, host takes part in a run");
  }
}

}  // namespace
}  // namespace fleetrun::launch::claimed_places_test
