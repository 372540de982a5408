// Restarts: which attempt follows on all nodes, and when none does.
#include <doctest/doctest.h>

#include <algorithm>
#include <csignal>
#include <functional>

#include <fmt/format.h>

#include "launch/nodes/coordinator.h"
#include "launch/nodes/coordinator_scene.h"

namespace fleetrun::launch::coordinator_restarts_test {
namespace {

using namespace std::chrono_literals;

using coordinator_scene::Scene;

TEST_CASE("with --max_restart all nodes start again together, after the pause") {
  Scene scene(2, {.most = 1, .first_delay = 2s});
  scene.run_two();
  scene.say(2, Ended{0, Scene::failure(100, "rank 2 exited with code 3"), {}});
  scene.say(1, Ended{});
  REQUIRE(scene.last<Again>(1) != nullptr);
  CHECK(scene.last<Again>(1)->attempt == 1);
  scene.say(1, Scene::ready({1, 2}, 1));
  scene.say(2, Scene::ready({3}, 1));
  CHECK(scene.last<Start>(1) == nullptr);
  scene.now += 2s;
  CHECK(scene.coordinator.wake_at() == scene.now);
  scene.take(scene.coordinator.woke(scene.now));
  REQUIRE(scene.last<Start>(1) != nullptr);
  CHECK(scene.last<Start>(1)->attempt == 1);
}

TEST_CASE("of two failures that another attempt follows, all nodes learn which was first") {
  Scene scene(2, {.most = 1, .first_delay = 2s});
  scene.run_two();
  scene.say(2, Ended{0, Scene::failure(100, "rank 2 exited with code 3"), {}});
  scene.say(1, Ended{0, Scene::failure(90, "rank 0 exited with code 1"), {}});
  for (const int node : {1, 2}) {
    REQUIRE(scene.last<Again>(node) != nullptr);
    REQUIRE(scene.last<Again>(node)->failure);
    CHECK(scene.last<Again>(node)->failure->line == "rank 0 exited with code 1");
  }
}

TEST_CASE("the highest step of all nodes says whether an attempt made progress") {
  Scene scene(2, {.most = 9, .first_delay = 0s});
  scene.run_two();
  for (int attempt = 0; attempt < 4; ++attempt) {
    CAPTURE(attempt);
    scene.now += 1h;
    scene.say(2, Ended{.attempt = attempt, .failure = Scene::failure(100, "rank 2 failed"), .step = 7});
    scene.say(1, Ended{.attempt = attempt, .step = 9 - attempt});
    CHECK((scene.last<Over>(1) == nullptr) == (attempt < 3));
    scene.now += 1min;
    scene.say(1, Scene::ready({1, 2}, attempt + 1));
    scene.say(2, Scene::ready({3}, attempt + 1));
  }
  CHECK(scene.last<Over>(1)->gave_up);
}

TEST_CASE("after an exit code of --no_restart_on no node starts again") {
  Scene scene(2, {.most = 9, .never_after = {3}});
  scene.run_two();
  scene.say(2, Ended{0, Scene::failure(100, "rank 2 exited with code 3"), {}});
  scene.say(1, Ended{});
  REQUIRE(scene.last<Over>(1) != nullptr);
  CHECK_FALSE(scene.last<Over>(1)->gave_up);
}

TEST_CASE("what does not help by starting again ends the run") {
  Scene scene(2, {.most = 1});
  scene.run_two();
  scene.say(1, Failed{0, Scene::failure(1, "stopped by SIGTERM (15)", "stopped")});
  scene.say(1, Ended{0, Scene::failure(1, "stopped by SIGTERM (15)", "stopped"), {}});
  scene.say(2, Ended{});
  CHECK(scene.last<Over>(2) != nullptr);
}

TEST_CASE(
    "a stop while the ranks end after a failure: the failure stays the cause, and no node starts again") {
  const auto ends_after = [](const std::function<void(Scene&)>& asks_to_end, const Ended& second) {
    Scene scene(2, {.most = 1});
    scene.run_two();
    scene.say(1, Failed{0, Scene::failure(1, "rank 0 exited with code 3")});
    asks_to_end(scene);
    scene.say(1, Ended{0, Scene::failure(1, "rank 0 exited with code 3"), {}});
    scene.say(2, second);
    REQUIRE(scene.last<Over>(2) != nullptr);
    CHECK(scene.last<Over>(2)->failure->line == "rank 0 exited with code 3");
  };
  SUBCASE("before the ranks of the node that was asked have ended") {
    ends_after([](Scene&) {}, {.no_restart = true});
  }
  SUBCASE("after they have ended") {
    ends_after(
        [](Scene& scene) {
          scene.say(2, Failed{0, Scene::failure(90'000, "stopped by SIGTERM (15) on node 1", "stopped")});
        },
        {});
  }
}

TEST_CASE(
    "when a rank fails while all are stopped by Ctrl-Z, SIGCONT still reaches all nodes, and they start again") {
  Scene scene(2, {.most = 1, .first_delay = 1s});
  scene.run_two();
  scene.say(2, Signalled{0, SIGTSTP});
  scene.say(1, Failed{0, Scene::failure(1, "rank 0 was killed by SIGKILL (9)", "killed")});
  scene.say(2, Signalled{0, SIGCONT});
  REQUIRE(scene.last<Signalled>(1) != nullptr);
  CHECK(scene.last<Signalled>(1)->signal == SIGCONT);
  scene.say(1, Ended{0, Scene::failure(1, "rank 0 was killed by SIGKILL (9)", "killed"), {}});
  scene.say(2, Ended{});
  REQUIRE(scene.last<Again>(1) != nullptr);
  scene.say(1, Scene::ready({1, 2}, 1));
  scene.say(2, Scene::ready({3}, 1));
  scene.now += 1s;
  scene.take(scene.coordinator.woke(scene.now));
  CHECK(scene.last<Start>(1) != nullptr);
}

}  // namespace
}  // namespace fleetrun::launch::coordinator_restarts_test
