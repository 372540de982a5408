// Elastic runs: nodes come and go.
#include <csignal>

#include <doctest/doctest.h>

#include "launch/nodes/elastic_scene.h"

namespace fleetrun::launch::elastic_coordinator_test {
namespace {

using namespace std::chrono_literals;
using coordinator_scene::ElasticScene;
using coordinator_scene::ended;
using coordinator_scene::range;
using coordinator_scene::running;
using coordinator_scene::Scene;

TEST_CASE(
    "an elastic run begins at once when all nodes have joined, and without some after --elastic_timeout") {
  ElasticScene all(range(2, 3));
  all.join_all(3);
  CHECK(all.last<Places>(3) != nullptr);

  ElasticScene two(range(2, 3));
  two.join_all(2);
  CHECK(two.last<Places>(1) == nullptr);
  two.now += 29s;
  two.take(two.coordinator.woke(two.now));
  CHECK(two.count<Places>(1) == 0);
  two.now += 1s;
  CHECK(two.coordinator.wake_at() <= two.now);
  two.take(two.coordinator.woke(two.now));
  REQUIRE(two.last<Places>(1) != nullptr);
  CHECK(two.last<Places>(1)->nodes.size() == 2);
}

TEST_CASE("a question for a node reaches it, and no other one, after a node before it has left") {
  for (const int least : {2, 3}) {  // the run goes on with two nodes, or gathers until there are three again
    ElasticScene scene(range(least, 3));
    Placed placed;
    for (const int node : {0, 1, 2}) {
      Join one = ElasticScene::join(1, node);
      one.address = "10.0.0." + std::to_string(node + 1);
      scene.say(static_cast<PeerId>(node) + 1, one);
      placed.nodes.push_back({.address = one.address, .host = one.host, .logs = one.logs, .device_ids = {}});
    }
    scene.be_ready({1, 2, 3}, 0);
    for (const int node : {0, 1, 2}) CHECK(scene.coordinator.peer_of(placed, node) == node + 1);
    scene.lose(2, 4s);
    scene.end({1, 3}, 0);
    CHECK(scene.coordinator.peer_of(placed, 0) == 1);
    CHECK(scene.coordinator.peer_of(placed, 1) == std::nullopt);
    CHECK(scene.coordinator.peer_of(placed, 2) == 3);
    CHECK(scene.coordinator.peer_of(placed, 3) == std::nullopt);
  }
}

TEST_CASE("with fewer nodes than MIN it waits until --join_timeout, and ends with 75") {
  ElasticScene scene(range(2, 3));
  scene.join_all(1);
  scene.now += 10min;
  scene.take(scene.coordinator.woke(scene.now));
  REQUIRE(scene.last<Over>(1) != nullptr);
  CHECK(scene.last<Over>(1)->failure->exit_code == 75);
  CHECK(scene.last<Over>(1)->failure->line ==
        "1 node of at least 2 did not join within 600 s (--join_timeout)");
}

TEST_CASE("hunt 52: a run that waits for more nodes, or begins without them, names those that are not here") {
  CoordinatorOptions options = range(1, 3);
  options.names = {"alpha", "beta", "gamma"};
  options.elastic_timeout = 30s;
  ElasticScene scene(options);
  scene.join_all(2);
  CHECK(scene.coordinator.missing() == "up to 1 more node, not here: node 2 (gamma)");
  scene.wake();
  CHECK(
      scene.last<Note>(2)->line ==
      "2 nodes have joined; waiting for up to 1 more node, not here: node 2 (gamma), until 30 s have passed "
      "(--elastic_timeout)");
  scene.now += 30s;
  scene.take(scene.coordinator.woke(scene.now));
  CHECK(std::ranges::any_of(scene.told[2], [](const FromFirst& message) {
    const auto* const note = std::get_if<Note>(&message);
    return note != nullptr &&
           note->line ==
               "the run begins with 2 nodes; it could take up to 1 more node, not here: node 2 (gamma)";
  }));
}

TEST_CASE("nodes that are enough do not begin without the first node, which coordinates them") {
  ElasticScene scene(range(2, 4));
  scene.say(3, Scene::join(1, 2));
  scene.say(4, Scene::join(1, 3));
  CHECK(*scene.coordinator.wake_at() == scene.now + 10s);  // only for a note on missing nodes
}

TEST_CASE("when a node is lost, the others get new numbers and begin the next attempt, which is a restart") {
  ElasticScene scene = running(range(2, 3), 3);
  scene.lose(2, 4s);
  REQUIRE(scene.last<Stop>(3) != nullptr);
  scene.end({1, 3}, 0);
  CHECK(scene.rank_of(1) == 0);
  CHECK(scene.rank_of(3) == 1);
  REQUIRE(scene.last<Again>(3) != nullptr);
  CHECK(scene.last<Again>(3)->attempt == 1);
  CHECK(scene.last<Again>(3)->delay == 0);
  CHECK(scene.last<Again>(3)->restarts == 1);
  scene.be_ready({1, 3}, 1);
  REQUIRE(scene.last<Start>(3) != nullptr);
  CHECK(scene.last<Start>(3)->ranks == std::vector<Endpoint>{{"10.0.0.9", 6071}, {"10.0.0.9", 6073}});
}

TEST_CASE("messages of an earlier attempt or of a lost node change nothing") {
  ElasticScene scene = running(range(2, 3), 3);
  scene.lose(2, 4s);
  scene.end({1, 3}, 0);
  scene.be_ready({1, 3}, 1);
  const auto told = scene.told[1].size();
  scene.be_ready({2}, 1);
  scene.say(2, Failed{1, Scene::failure(5, "late")});
  scene.say(3, Failed{0, Scene::failure(5, "late")});
  scene.say(3, ended(0));
  CHECK(scene.told[1].size() == told);
  scene.end({1, 3}, 1);
  REQUIRE(scene.last<Over>(1) != nullptr);
  CHECK_FALSE(scene.last<Over>(1)->failure);
}

TEST_CASE("the report of the first node says how long no rank worked, and why") {
  ElasticScene scene = running(range(2, 3), 3);
  scene.now += 10s;
  scene.lose(2, 4s);
  scene.now += 2s;
  scene.end({1, 3}, 0);
  scene.now += 500ms;
  scene.be_ready({1, 3}, 1);
  REQUIRE(scene.coordinator.stand_stills().size() == 1);
  const StandStill& one = scene.coordinator.stand_stills().front();
  CHECK(one.attempt == 1);
  CHECK(one.nodes == 2);
  CHECK(one.why == "lost node 1 (10.0.0.9, host): no answer for 4 s; last heard 4.0 s ago");
  CHECK(one.detection == 4s);
  CHECK(one.stop == 2s);
  CHECK(one.pause == 0s);
  CHECK(one.join == 500ms);
}

TEST_CASE(
    "a node that is lost before the ranks start again lengthens the stand-still, and does not begin another one") {
  ElasticScene scene = running(range(2, 4), 4);
  scene.now += 10s;
  scene.lose(2, 4s);
  scene.now += 2s;
  scene.end({1, 3, 4}, 0);
  scene.now += 3s;
  scene.lose(3, 1s);
  scene.now += 500ms;
  scene.be_ready({1, 4}, 2);
  REQUIRE(scene.coordinator.stand_stills().size() == 1);
  const StandStill& one = scene.coordinator.stand_stills().front();
  CHECK(one.attempt == 2);
  CHECK(one.nodes == 2);
  CHECK(one.why ==
        "lost node 1 (10.0.0.9, host): no answer for 4 s; last heard 4.0 s ago; then "
        "lost node 1 (10.0.0.9, host): no answer for 4 s; last heard 1.0 s ago");
  CHECK(one.detection == 4s);
  CHECK(one.stop == 2s);
  CHECK(one.pause == 0s);
  CHECK(one.join == 3500ms);
}

TEST_CASE("of a pause that the loss of a node ends, the stand-still counts what has passed") {
  CoordinatorOptions options = range(1, 3);
  options.restart.first_delay = 10s;
  ElasticScene scene = running(options, 3);
  scene.now += 10s;
  const NodeFailure failure =
      Scene::failure(scene.now.time_since_epoch() / std::chrono::nanoseconds(1), "rank 0 exited with code 3");
  scene.say(1, Failed{0, failure});
  scene.say(1, Ended{.attempt = 0, .failure = failure, .ranks = {}});
  scene.end({2, 3}, 0);
  scene.now += 3s;
  scene.lose(3, 1s);
  scene.now += 1s;
  scene.be_ready({1, 2}, 2);
  REQUIRE(scene.coordinator.stand_stills().size() == 1);
  const StandStill& one = scene.coordinator.stand_stills().front();
  CHECK(one.why.starts_with("rank 0 exited with code 3; then lost node 2"));
  CHECK(one.pause == 3s);
  CHECK(one.join == 1s);
}

TEST_CASE("without a restart that is left, a lost node ends an elastic run, too") {
  CoordinatorOptions options = range(2, 3);
  options.restart.most = 0;
  ElasticScene scene = running(options, 3);
  scene.lose(2, 4s);
  scene.end({1, 3}, 0);
  REQUIRE(scene.last<Over>(1) != nullptr);
  CHECK(scene.last<Over>(1)->failure->cause == "node_lost");
  CHECK(scene.last<Over>(1)->failure->exit_code == 75);
  CHECK(scene.last<Over>(1)->failure->block.ends_with("fleetrun: no restart is left (--max_restart=0)\n"));
}

TEST_CASE(
    "when too few nodes are left, the run waits for one to come back, and ends with 75 when none does") {
  for (const bool comes : {true, false}) {
    CAPTURE(comes);
    ElasticScene scene = running(range(2, 3), 2);
    scene.lose(2, 4s);
    scene.end({1}, 0);
    REQUIRE(scene.last<Note>(1) != nullptr);
    CHECK(
        scene.last<Note>(1)->line ==
        "lost node 1 (10.0.0.9, host): no answer for 4 s; last heard 4.0 s ago; waiting 30 s for 1 node to join "
        "(--elastic_timeout)");
    CHECK(scene.last<Note>(1)->missing == "1 node");
    if (comes) {
      scene.say(9, Scene::join(1, 1));
      CHECK(scene.last<Again>(1) != nullptr);
      CHECK(scene.rank_of(9) == 1);
      REQUIRE(scene.last<Places>(9) != nullptr);
      CHECK(scene.last<Places>(9)->attempt == 1);
    } else {
      scene.wake();
      REQUIRE(scene.last<Over>(1) != nullptr);
      CHECK(scene.last<Over>(1)->failure->exit_code == 75);
      CHECK(scene.last<Over>(1)->failure->block.ends_with(
          "fleetrun: 1 node is left, and the run needs 2 (--nnodes)\n"));
    }
  }
}

TEST_CASE("hunt 22: a run that is stopped while it waits for nodes says why it waits") {
  ElasticScene scene = running(range(2, 3), 2);
  const NodeFailure failure =
      Scene::failure(scene.now.time_since_epoch() / std::chrono::nanoseconds(1), "rank 0 exited with code 3");
  scene.say(1, Failed{0, failure});
  scene.now += 2s;
  scene.lose(2, 1s);
  scene.say(1, Ended{.attempt = 0, .failure = failure, .ranks = {}});
  REQUIRE(scene.last<Note>(1) != nullptr);
  CHECK(scene.last<Note>(1)->line.starts_with(
      "rank 0 exited with code 3; node 1 (10.0.0.9, host) lost; waiting 30 s for 1 node"));
  NodeFailure stopped = Scene::failure(failure.at, "stopped by SIGTERM (15) on node 0", "stopped");
  stopped.signal = 15;
  scene.say(1, Failed{0, stopped});
  REQUIRE(scene.last<Over>(1) != nullptr);
  const NodeFailure& end = *scene.last<Over>(1)->failure;
  CHECK(end.cause == "stopped");
  CHECK(end.signal == 15);
  CHECK(end.line ==
        "stopped by SIGTERM (15) on node 0 while waiting for nodes to join after: rank 0 exited with code 3");
  CHECK(end.block.starts_with("rank 0 exited with code 3\nfleetrun: then lost node 1"));
  CHECK(end.block.ends_with("fleetrun: " + end.line + "\n"));
}

TEST_CASE(
    "a node that comes during an attempt is taken in some seconds after the start, which is no restart") {
  ElasticScene scene = running(range(2, 3), 2);
  scene.say(9, Scene::join(1, 2));
  CHECK(scene.last<Note>(9) != nullptr);
  CHECK(scene.count<Stop>(1) == 0);
  scene.wake();
  REQUIRE(scene.last<Stop>(1) != nullptr);
  CHECK(scene.last<Stop>(1)->why == "the ranks start again to take in 10.0.0.9, host");
  CHECK(scene.count<Stop>(9) == 0);
  scene.end({1, 2}, 0);
  REQUIRE(scene.last<Again>(2) != nullptr);
  CHECK(scene.last<Again>(2)->restarts == 0);
  CHECK(scene.rank_of(9) == 2);
  CHECK(scene.count<Again>(9) == 0);
  REQUIRE(scene.last<Places>(9) != nullptr);
  CHECK(scene.last<Places>(9)->attempt == 1);
  scene.be_ready({1, 2, 9}, 1);
  CHECK(scene.last<Start>(9) != nullptr);
}

TEST_CASE("a node is not taken in while the run is ending, is suspended, or would lose work") {
  ElasticScene ending = running(range(2, 3), 2);
  ending.say(1, Finished{0, 0});
  ending.say(9, Scene::join(1, 2));
  CHECK_FALSE(ending.coordinator.wake_at());

  ElasticScene suspended = running(range(2, 3), 2);
  suspended.say(1, Signalled{0, SIGTSTP});
  suspended.say(9, Scene::join(1, 2));
  CHECK_FALSE(suspended.coordinator.wake_at());

  CoordinatorOptions options = range(2, 3);
  options.takes_in_while_running = false;
  ElasticScene losing = running(options, 2);
  losing.say(9, Scene::join(1, 2));
  CHECK_FALSE(losing.coordinator.wake_at());
  losing.say(2, Failed{0, Scene::failure(5, "rank 1 exited with code 3")});
  losing.say(2, Ended{0, Scene::failure(5, "rank 1 exited with code 3"), JsonValue::list({}), {}});
  losing.end({1}, 0);
  CHECK(losing.rank_of(9) == 2);  // at the restart
}

TEST_CASE("when the node that suspended the run is lost, the others go on without it") {
  ElasticScene scene = running(range(2, 3), 3);
  scene.say(2, Signalled{0, SIGTSTP});
  scene.lose(2, 4s);
  CHECK(scene.count<Signalled>(1) == 2);  // SIGTSTP, SIGCONT
  REQUIRE(scene.last<Stop>(3) != nullptr);
  scene.end({1, 3}, 0);
  scene.be_ready({1, 3}, 1);
  CHECK(scene.last<Start>(1) != nullptr);
}

TEST_CASE(
    "a run that was suspended before it began, or on two nodes, goes on when the last of these is lost") {
  ElasticScene scene(range(2, 4));
  scene.join_all(4);
  scene.say(2, Signalled{0, SIGTSTP});
  scene.say(3, Signalled{0, SIGTSTP});
  scene.lose(2, 4s);
  scene.be_ready({1, 3, 4}, 1);
  CHECK(scene.last<Start>(1) == nullptr);
  scene.lose(3, 4s);
  CHECK(scene.count<Signalled>(4) == 3);  // SIGTSTP of each, SIGCONT
  scene.be_ready({1, 4}, 2);
  CHECK(scene.last<Start>(4) != nullptr);
}

TEST_CASE("a node without a place does not suspend the run") {
  ElasticScene scene = running(range(2, 3, 1), 3);
  scene.say(3, Signalled{0, SIGTSTP});
  CHECK(scene.count<Signalled>(1) == 0);
}

TEST_CASE("when all ranks finish just as a node is taken in, the run is over for that node, too") {
  ElasticScene scene = running(range(2, 3), 2);
  scene.say(9, Scene::join(1, 2));
  scene.wake();
  scene.say(1, ended(0, true));
  scene.say(2, ended(0, true));
  for (const PeerId peer : {1, 2, 9}) {
    REQUIRE(scene.last<Over>(peer) != nullptr);
    CHECK_FALSE(scene.last<Over>(peer)->failure);
  }
}

TEST_CASE("a node that comes back before its loss is known waits, and then gets its number again") {
  ElasticScene scene = running(range(2, 3), 3);
  scene.say(9, Scene::join(1, 1));
  CHECK(scene.last<Note>(9) != nullptr);
  CHECK_FALSE(scene.coordinator.wake_at());
  scene.lose(2, 4s);
  scene.end({1, 3}, 0);
  CHECK(scene.rank_of(9) == 1);
  CHECK(scene.rank_of(3) == 2);
}

TEST_CASE("spare nodes wait, and one takes the place of a lost node") {
  ElasticScene scene(range(3, 3, 1));
  scene.join_all(2);
  scene.say(3, Scene::join(1, 2));
  scene.be_ready({1, 2}, 0);
  REQUIRE(scene.last<Start>(2) != nullptr);
  CHECK(scene.last<Start>(2)->ranks.size() == 2);
  CHECK(scene.last<Note>(3) != nullptr);
  CHECK_FALSE(scene.coordinator.wake_at());
  scene.lose(2, 4s);
  scene.end({1}, 0);
  CHECK(scene.rank_of(3) == 1);
  scene.be_ready({1, 3}, 1);
  CHECK(scene.last<Start>(3) != nullptr);
}

TEST_CASE("a node that joins during the run must have the same settings") {
  ElasticScene scene = running(range(2, 3), 2);
  Join other = Scene::join(1, 2);
  other.terms = {{"--timeout", "6"}};
  scene.say(9, other);
  REQUIRE(scene.last<Over>(9) != nullptr);
  CHECK(scene.last<Over>(9)->failure->line ==
        "the nodes do not agree:\n  --timeout: 5 on node 0 (10.0.0.9, host), 6 on 10.0.0.9, host");
  CHECK(scene.dropped == std::vector<PeerId>{9});
}

TEST_CASE("a node that is lost before the ranks start is left out, and the others get ready again") {
  ElasticScene scene(range(2, 3));
  scene.join_all(3);
  scene.be_ready({1}, 0);
  scene.lose(2, 4s);
  REQUIRE(scene.last<Again>(1) != nullptr);
  CHECK(scene.last<Again>(1)->attempt == 1);
  scene.be_ready({3}, 0);  // for the attempt that nobody starts
  scene.be_ready({1}, 1);
  CHECK(scene.last<Start>(1) == nullptr);
  scene.be_ready({3}, 1);
  CHECK(scene.last<Start>(1) != nullptr);
}

TEST_CASE(
    "a node whose front process is gone, or that cannot go on, counts as lost; the first node ends the run") {
  for (const char* cause :
       {"front_lost", "error", "node_lost"})  // the last one: of a node whose ssh has ended
    for (const PeerId leaving : {2, 1}) {
      CAPTURE(cause);
      CAPTURE(leaving);
      ElasticScene scene = running(range(2, 3), 3);
      NodeFailure failure = Scene::failure(5, "gone", cause);
      failure.exit_code = 75;
      scene.say(leaving, Failed{0, failure});
      scene.say(leaving, Ended{0, failure, JsonValue::list({}), {}});
      REQUIRE((leaving == 1 || scene.last<Over>(2) != nullptr));
      scene.end({1, 2, 3}, 0);
      if (leaving == 1) {
        CHECK(scene.last<Over>(3) != nullptr);
        continue;
      }
      CHECK(scene.dropped == std::vector<PeerId>{2});
      CHECK(scene.last<Again>(3) != nullptr);
      CHECK(scene.count<Again>(2) == 0);
    }
}

NodeFailure front_lost(std::int64_t at) {
  NodeFailure failure = Scene::failure(at, "the front process was lost", "front_lost");
  failure.exit_code = 75;
  return failure;
}

TEST_CASE("a node whose ranks have all finished is left out, too, when its front process goes") {
  ElasticScene scene = running(range(2, 3), 3);
  scene.say(2, Ended{.attempt = 0, .failure = {}, .ranks = JsonValue::list({}), .finished = true});
  scene.say(2, Failed{0, front_lost(5)});
  CHECK(scene.dropped == std::vector<PeerId>{2});
  CHECK(scene.last<Stop>(3) != nullptr);
  scene.end({1, 3}, 0);
  CHECK(scene.last<Again>(3) != nullptr);
  CHECK(scene.count<Again>(2) == 0);
}

TEST_CASE("the others go on when a front process goes while the ranks of its node are ending") {
  ElasticScene scene = running(range(2, 3), 3);
  scene.say(3, Failed{0, Scene::failure(5, "rank 2 exited with code 3")});
  scene.say(2, Failed{0, front_lost(6)});
  scene.say(2, Ended{.attempt = 0, .failure = {}, .ranks = JsonValue::list({}), .no_restart = true});
  CHECK(scene.dropped == std::vector<PeerId>{2});
  scene.end({1, 3}, 0);
  CHECK(scene.last<Again>(3) != nullptr);
  CHECK(scene.count<Again>(2) == 0);
}

TEST_CASE("a rank that fails on a node that is then lost is no failure of the program") {
  ElasticScene scene = running(range(1, 2), 2);
  scene.say(2, Failed{0, Scene::failure(5, "rank 1 was killed", "killed")});
  scene.lose(2, 4s);
  scene.end({1}, 0);
  REQUIRE(scene.last<Again>(1) != nullptr);
  CHECK(scene.last<Again>(1)->delay == 0);
  CHECK(scene.last<Again>(1)->failure->block.find("fleetrun: then lost node 1") != std::string::npos);
  scene.be_ready({1}, 1);
  REQUIRE(scene.coordinator.stand_stills().size() == 1);
  CHECK(scene.coordinator.stand_stills().front().why.starts_with("rank 1 was killed; then lost node 1 ("));
}

}  // namespace
}  // namespace fleetrun::launch::elastic_coordinator_test
