// Which error on another node explains the lost connection of the rank that failed.
#include <doctest/doctest.h>

#include "launch/nodes/coordinator_scene.h"

namespace fleetrun::launch::earlier_words_test {
namespace {

using namespace std::chrono_literals;

using coordinator_scene::Scene;

constexpr std::int64_t kFailedAt = 100'000'000'000;  // ns

std::int64_t before(Clock::duration time) { return kFailedAt - time / 1ns; }

Ended ended_with(const std::string& line, std::int64_t at, bool may_be_caught, bool finished = true) {
  Ended ended = {.ranks = JsonValue::list({}), .finished = finished};
  ended.earlier = {.line = line, .block = line + "\n", .json = {}, .at = at, .may_be_caught = may_be_caught};
  return ended;
}

// The line that all nodes show if the rank of node 0 loses a connection, and these are the ends of nodes 1 and 2.
std::string line_after(const Ended& second, const Ended& third) {
  Scene scene(3);
  for (const int rank : {0, 1, 2}) scene.say(static_cast<PeerId>(rank) + 1, Scene::join(1, rank));
  for (const PeerId peer : {1, 2, 3}) scene.say(peer, Scene::ready({7070}));
  scene.say(2, second);
  scene.say(3, third);
  NodeFailure failure = Scene::failure(kFailedAt, "rank 0 exited with code 1");
  failure.evidence =
      JsonValue::object({{"exception", "ConnectionResetError: [Errno 104] Connection reset by peer"}});
  scene.say(1, Failed{0, failure});
  scene.say(1, Ended{.failure = failure, .ranks = JsonValue::list({})});
  const auto* over = scene.last<Over>(1);
  REQUIRE(over != nullptr);
  return over->failure->line;
}

TEST_CASE("of the errors on several nodes, the oldest one explains the lost connection") {
  CHECK(line_after(ended_with("later", before(1s), true), ended_with("earlier", before(2s), true)) ==
        "rank 0 exited with code 1; earlier");
}

TEST_CASE("an error that nobody caught comes before an older one that somebody may have caught") {
  CHECK(line_after(ended_with("caught", before(2s), true), ended_with("uncaught", before(1s), false)) ==
        "rank 0 exited with code 1; uncaught");
}

TEST_CASE("an error explains nothing if all ranks of its node ended with 0 more than 5 s after it") {
  CHECK(line_after(ended_with("", 0, false), ended_with("old", before(6s), true)) ==
        "rank 0 exited with code 1");
  CHECK(line_after(ended_with("", 0, false), ended_with("new", before(4s), true)) ==
        "rank 0 exited with code 1; new");
}

}  // namespace
}  // namespace fleetrun::launch::earlier_words_test
