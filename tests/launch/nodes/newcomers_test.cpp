// Elastic runs: nodes that join late, and do not fit, or join in the pause before a restart.
#include <doctest/doctest.h>

#include <chrono>

#include "launch/nodes/elastic_scene.h"

namespace fleetrun::launch::newcomers_test {
namespace {

using namespace std::chrono_literals;
using coordinator_scene::ElasticScene;
using coordinator_scene::range;
using coordinator_scene::running;
using coordinator_scene::Scene;

TEST_CASE("hunt 44: a run goes on without a node that it has taken in and whose data are others") {
  ElasticScene scene = running(range(2, 3), 2);
  scene.say(9, Scene::join(1, 2));
  scene.wake();
  scene.end({1, 2}, 0);
  scene.be_ready({1, 2, 9}, 1);
  REQUIRE(scene.last<Start>(9) != nullptr);
  NodeFailure differs = Scene::failure(5, "rank 1 exited with code 76");
  differs.exit_code = 76;
  scene.say(2, Failed{1, differs});
  scene.say(2, Ended{1, differs, JsonValue::list({}), {}});
  scene.end({1, 9}, 1);
  REQUIRE(scene.last<Over>(9) != nullptr);
  CHECK(scene.last<Over>(9)->failure->exit_code == 76);
  CHECK(scene.dropped == std::vector<PeerId>{9});
  for (const PeerId peer : {1, 2}) {
    REQUIRE(scene.last<Again>(peer) != nullptr);
    CHECK(scene.last<Again>(peer)->restarts == 0);
    CHECK(scene.last<Again>(peer)->failure->block ==
          "fleetrun: the run goes on without 10.0.0.9, host, which does not match the other nodes\n");
  }
  scene.be_ready({1, 2}, 2);
  REQUIRE(scene.last<Start>(2) != nullptr);
  CHECK(scene.last<Start>(2)->ranks.size() == 2);
  scene.say(2, Failed{2, differs});  // without newcomers
  scene.say(2, Ended{2, differs, JsonValue::list({}), {}});
  scene.end({1}, 2);
  REQUIRE(scene.last<Over>(1) != nullptr);
  CHECK(scene.last<Over>(1)->failure->exit_code == 76);
}

// Peers 8 and 9 join a run of peers 1 and 2, and all of them begin attempt 1.
ElasticScene with_two_newcomers() {
  ElasticScene scene = running(range(2, 4), 2);
  Join good = Scene::join(1, 2), bad = Scene::join(1, 3);
  good.host = "good";
  bad.host = "bad";
  scene.say(8, good);
  scene.say(9, bad);
  scene.wake();
  scene.end({1, 2}, 0);
  scene.be_ready({1, 2, 8, 9}, 1);
  REQUIRE(scene.last<Start>(9) != nullptr);
  return scene;
}

TEST_CASE(
    "hunt 47: of two nodes that were taken in, only the one that the comparison of the data names has to go") {
  ElasticScene scene = with_two_newcomers();
  NodeFailure differs = Scene::failure(5, "rank 1 exited with code 76");
  differs.exit_code = 76;
  differs.block = "rank 1: error: the nodes have different data (node 0, host and node 3, bad): ...\n";
  scene.say(2, Ended{1, differs, JsonValue::list({}), {}});
  scene.end({1, 8, 9}, 1);
  CHECK(scene.dropped == std::vector<PeerId>{9});
  REQUIRE(scene.last<Again>(8) != nullptr);
  scene.be_ready({1, 2, 8}, 2);
  CHECK(scene.last<Start>(8) != nullptr);
}

TEST_CASE("hunt 47: a node that was taken in and whose data cannot be read ends alone") {
  ElasticScene scene = with_two_newcomers();
  NodeFailure broken = Scene::failure(5, "rank 3 exited with code 65");
  broken.exit_code = 65;
  scene.say(9, Failed{1, broken});
  scene.say(9, Ended{1, broken, JsonValue::list({}), {}});
  scene.end({1, 2, 8}, 1);
  REQUIRE(scene.last<Over>(9) != nullptr);
  CHECK(scene.last<Over>(9)->failure->exit_code == 65);
  CHECK(scene.dropped == std::vector<PeerId>{9});
  CHECK(scene.last<Again>(1) != nullptr);

  ElasticScene other = with_two_newcomers();  // the same of a node that has worked before ends the run
  other.say(2, Failed{1, broken});
  other.say(2, Ended{1, broken, JsonValue::list({}), {}});
  other.end({1, 8, 9}, 1);
  REQUIRE(other.last<Over>(1) != nullptr);
}

TEST_CASE("hunt 47: a node that joins in the pause before a restart takes part in it") {
  CoordinatorOptions options = range(2, 3);
  options.restart.most = 3;
  options.restart.first_delay = 8s;
  options.takes_in_while_running = false;
  ElasticScene scene = running(options, 2);
  scene.say(2, Failed{0, Scene::failure(5, "rank 1 exited with code 3")});
  scene.say(2, Ended{0, Scene::failure(5, "rank 1 exited with code 3"), JsonValue::list({}), {}});
  scene.end({1}, 0);
  REQUIRE(scene.last<Again>(1) != nullptr);
  const auto start = scene.now + std::chrono::nanoseconds(scene.last<Again>(1)->delay);
  scene.now += 1s;
  scene.say(9, Scene::join(1, 2));
  CHECK(scene.rank_of(9) == 2);
  REQUIRE(scene.last<Again>(1) != nullptr);
  CHECK(scene.last<Again>(1)->attempt == 2);
  CHECK(scene.now + std::chrono::nanoseconds(scene.last<Again>(1)->delay) == start);
  CHECK(scene.last<Again>(1)->restarts == 1);
  scene.be_ready({1, 2, 9}, 2);
  CHECK(scene.last<Start>(9) == nullptr);
  scene.wake();
  CHECK(scene.last<Start>(9) != nullptr);
}

TEST_CASE("hunt 50: a node is new until its ranks have started, however many nodes join in one pause") {
  CoordinatorOptions options = range(2, 4);
  options.restart.most = 3;
  options.restart.first_delay = 8s;
  ElasticScene scene = running(options, 2);
  const NodeFailure failed = Scene::failure(5, "rank 1 exited with code 3");
  scene.say(2, Failed{0, failed});
  scene.say(2, Ended{0, failed, JsonValue::list({}), {}});
  scene.end({1}, 0);
  scene.say(8, Scene::join(1, 2));
  scene.say(9, Scene::join(1, 3));
  REQUIRE(scene.last<Again>(1) != nullptr);
  REQUIRE(scene.last<Again>(1)->attempt == 3);
  scene.be_ready({1, 2, 8, 9}, 3);
  scene.wake();
  REQUIRE(scene.last<Start>(9) != nullptr);
  NodeFailure broken = Scene::failure(6, "rank 2 exited with code 65");
  broken.exit_code = 65;
  scene.say(8, Failed{3, broken});
  scene.say(8, Ended{3, broken, JsonValue::list({}), {}});
  scene.end({1, 2, 9}, 3);
  CHECK(scene.dropped == std::vector<PeerId>{8});
  CHECK(scene.last<Again>(9) != nullptr);
}

}  // namespace
}  // namespace fleetrun::launch::newcomers_test
