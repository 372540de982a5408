#include "launch/nodes/coordinator.h"

#include <doctest/doctest.h>
#include <malloc.h>

#include <algorithm>
#include <csignal>
#include <functional>
#include <random>

#include <fmt/format.h>

#include "launch/nodes/coordinator_scene.h"

namespace fleetrun::launch::coordinator_test {
namespace {

using namespace std::chrono_literals;

using coordinator_scene::kStart;
using coordinator_scene::Scene;

TEST_CASE("when all have joined each node gets its place, and when all are ready the endpoints of all") {
  Scene scene(2);
  scene.say(1, Scene::join(2, 0));
  CHECK(scene.rank_of(1) == -1);
  scene.say(2, Scene::join(1, 1));
  REQUIRE(scene.last<Places>(2) != nullptr);
  CHECK(scene.rank_of(2) == 1);
  CHECK(scene.last<Places>(2)->nodes.size() == 2);
  scene.say(2, Scene::ready({7070}));
  CHECK(scene.last<Start>(2) == nullptr);
  scene.say(1, Scene::ready({6070, 6071}));
  REQUIRE(scene.last<Start>(2) != nullptr);
  const Start& start = *scene.last<Start>(2);
  CHECK(start.ranks == std::vector<Endpoint>{{"10.0.0.9", 6070}, {"10.0.0.9", 6071}, {"10.0.0.9", 7070}});
  CHECK(start.master == Endpoint{"10.0.0.9", 99});
  CHECK(start.store == Endpoint{"10.0.0.9", 98});
}

TEST_CASE("nodes without a rank get the free ones in the order in which they came") {
  Scene scene(3);
  scene.say(7, Scene::join(1));
  scene.say(8, Scene::join(1, 0));
  scene.say(9, Scene::join(1));
  CHECK(scene.rank_of(8) == 0);
  CHECK(scene.rank_of(7) == 1);
  CHECK(scene.rank_of(9) == 2);
}

TEST_CASE(
    "without_missing, the nodes that have joined go on after the time limit, and the others have no host") {
  Scene scene(CoordinatorOptions{.nodes = 3,
                                 .run_id = "run",
                                 .names = {"a", "b", "c"},
                                 .join_timeout = 5s,
                                 .without_missing = true,
                                 .restart = {}});
  scene.say(1, Scene::join(1, 0));
  scene.say(2, Scene::join(1, 2));
  scene.take(scene.coordinator.woke(kStart + 5s));
  REQUIRE(scene.last<Places>(2) != nullptr);
  const auto& nodes = scene.last<Places>(2)->nodes;
  REQUIRE(nodes.size() == 3);
  CHECK(nodes[1].address == "b");
  CHECK(nodes[1].host.empty());
  CHECK(nodes[2].host == "host");
  const Placed placed = {.nodes = nodes};
  CHECK(scene.coordinator.peer_of(placed, 1) == std::nullopt);
  CHECK(scene.coordinator.peer_of(placed, 2) == PeerId{2});
}

TEST_CASE("a node with another key is noted once, with the file of the key") {
  CoordinatorOptions options = {.nodes = 2, .run_id = "run", .names = {}, .restart = {}};
  for (const std::string file : {"~/.fleetrun/key", "shared/run.key"}) {
    options.key_file = file;
    Scene scene(options);
    scene.say(1, Scene::join(1, 0));
    scene.take(scene.coordinator.refused("10.0.0.7"));
    REQUIRE(scene.last<Note>(1) != nullptr);
    CHECK(scene.last<Note>(1)->line ==
          "a node with another key tried to join from 10.0.0.7; copy " + file + " of the first node to it");
    CHECK(scene.coordinator.refused("10.0.0.7").empty());
  }
}

TEST_CASE("a node that joins hears of the node with another key that came before it") {
  Scene scene(CoordinatorOptions{.nodes = 2, .run_id = "run", .names = {}, .restart = {}});
  scene.take(scene.coordinator.refused("10.0.0.7"));
  scene.say(1, Scene::join(1, 0));
  REQUIRE(scene.last<Note>(1) != nullptr);
  CHECK(scene.last<Note>(1)->line.starts_with("a node with another key tried to join from 10.0.0.7; copy "));
}

TEST_CASE("nodes that differ in what they must share are told how, and nothing starts") {
  Scene scene(2);
  scene.say(1, Scene::join(1, 0));
  Join other = Scene::join(1, 1);
  other.terms = {{"--timeout", "6"}, {"--extra", "1"}};
  scene.say(2, other);
  for (const PeerId peer : {1, 2}) {
    REQUIRE(scene.last<Over>(peer) != nullptr);
    CHECK(scene.last<Over>(peer)->failure->exit_code == 76);
    CHECK(scene.last<Over>(peer)->failure->line ==
          "the nodes do not agree:\n"
          "  --extra: nothing on node 0 (10.0.0.9, host), 1 on node 1 (10.0.0.9, host)\n"
          "  --timeout: 5 on node 0 (10.0.0.9, host), 6 on node 1 (10.0.0.9, host)");
  }
}

TEST_CASE("those that wait are told every 10 s who is missing, and after the time limit it is over") {
  Scene scene(3, {}, {"10.0.0.1", "10.0.0.2", "10.0.0.3"});
  scene.say(1, Scene::join(1, 0));
  REQUIRE(scene.last<Note>(1) != nullptr);
  CHECK(scene.last<Note>(1)->line.empty());  // nothing to show yet
  CHECK(scene.last<Note>(1)->missing == "node 1 (10.0.0.2), node 2 (10.0.0.3)");
  scene.now += 10s;
  CHECK(scene.coordinator.wake_at() == scene.now);
  scene.take(scene.coordinator.woke(scene.now));
  REQUIRE(scene.last<Note>(1) != nullptr);
  CHECK(scene.last<Note>(1)->line == "waiting for node 1 (10.0.0.2), node 2 (10.0.0.3) (10 s)");
  scene.now = kStart + 10min;
  scene.take(scene.coordinator.woke(scene.now));
  REQUIRE(scene.last<Over>(1) != nullptr);
  CHECK(scene.last<Over>(1)->failure->line ==
        "node 1 (10.0.0.2), node 2 (10.0.0.3) did not join within 600 s (--join_timeout)");
  CHECK(scene.last<Over>(1)->failure->exit_code == 75);
}

TEST_CASE("a node that comes after the time limit is told what the others were told") {
  Scene scene(3, {}, {"10.0.0.1", "10.0.0.2", "10.0.0.3"});
  scene.take(scene.coordinator.woke(kStart + 10min));
  scene.say(1, Scene::join(1, 0));
  REQUIRE(scene.last<Over>(1) != nullptr);
  CHECK(scene.last<Over>(1)->failure->line ==
        "node 1 (10.0.0.2), node 2 (10.0.0.3) did not join within 600 s (--join_timeout)");
  CHECK(scene.dropped == std::vector<PeerId>{1});
}

TEST_CASE("a node that cannot join ends the run of those that wait for it, with its code") {
  Scene scene(2);
  scene.say(1, Scene::join(1, 0));
  NodeFailure failure = Scene::failure(0, "node 1 (b) cannot join: no program", "error");
  failure.exit_code = 127;
  scene.say(2, Failed{0, failure});
  REQUIRE(scene.last<Over>(1) != nullptr);
  CHECK(scene.last<Over>(1)->failure->line == "node 1 (b) cannot join: no program");
  CHECK(scene.last<Over>(1)->failure->exit_code == 127);
  CHECK(scene.dropped == std::vector<PeerId>{2});
}

TEST_CASE("an elastic run goes on without a node that cannot join") {
  Scene scene({.nodes = 3, .least = 1, .run_id = "run", .names = {}, .restart = {}});
  scene.say(1, Scene::join(1, 0));
  scene.say(2, Failed{0, Scene::failure(0, "node 1 (b) cannot join: no program", "error")});
  REQUIRE(scene.last<Note>(1) != nullptr);
  CHECK(scene.last<Note>(1)->line == "node 1 (b) cannot join: no program");
  CHECK_FALSE(scene.coordinator.over());
}

TEST_CASE("a node that leaves before the start may come again") {
  Scene scene(2);
  scene.say(1, Scene::join(1, 0));
  scene.say(2, Scene::join(1, 1));
  Scene other(2);
  other.say(1, Scene::join(1, 0));
  other.lose(1, 1s);
  other.say(3, Scene::join(1, 0));
  other.say(2, Scene::join(1, 1));
  CHECK(other.last<Places>(3) != nullptr);
}

TEST_CASE("when all ranks of all nodes have ended well, the run is over without a failure") {
  Scene scene(2);
  scene.run_two();
  scene.say(1, Ended{});
  CHECK(scene.last<Over>(1) == nullptr);
  scene.say(2, Ended{});
  REQUIRE(scene.last<Over>(1) != nullptr);
  CHECK_FALSE(scene.last<Over>(1)->failure);
  CHECK(scene.coordinator.over());
}

TEST_CASE("a failure on one node stops the others, and all get the same cause") {
  Scene scene(2);
  scene.run_two();
  scene.say(2, Failed{0, Scene::failure(100, "rank 2 exited with code 3")});
  REQUIRE(scene.last<Stop>(1) != nullptr);
  CHECK(scene.last<Stop>(1)->why == "rank 2 exited with code 3");
  CHECK(scene.last<Stop>(2) == nullptr);  // it knows
  scene.say(2, Ended{0, Scene::failure(100, "rank 2 exited with code 3: ValueError"), {}});
  scene.say(1, Ended{});
  for (const PeerId peer : {1, 2}) {
    REQUIRE(scene.last<Over>(peer) != nullptr);
    CHECK(scene.last<Over>(peer)->failure->line == "rank 2 exited with code 3: ValueError");
    CHECK(scene.last<Over>(peer)->node == 1);
  }
}

TEST_CASE("the first failure by time is the cause, whoever tells of his first") {
  Scene scene(2);
  scene.run_two();
  scene.say(2, Failed{0, Scene::failure(2000, "rank 2 exited with code 3")});
  scene.say(1, Failed{0, Scene::failure(1000, "rank 0 exited with code 3")});
  scene.say(1, Ended{0, Scene::failure(1000, "rank 0 exited with code 3"), {}});
  scene.say(2, Ended{0, Scene::failure(2000, "rank 2 exited with code 3"), {}});
  CHECK(scene.last<Over>(2)->failure->line == "rank 0 exited with code 3");
  CHECK(scene.last<Over>(2)->failure->block == "rank 0 exited with code 3\n");
}

TEST_CASE("failures that the clocks cannot tell apart are called so") {
  Scene scene(2);
  scene.run_two();
  scene.say(1, Ended{0, Scene::failure(1000, "rank 0 exited with code 3"), {}});
  scene.say(2, Ended{0, Scene::failure(1015, "rank 2 exited with code 3"), {}});
  CHECK(
      scene.last<Over>(1)->failure->block ==
      "rank 0 exited with code 3\n"
      "fleetrun: rank 2 exited with code 3 at the same time: the nodes can compare times only to within 0.0 ms\n");
}

TEST_CASE("what all nodes find at the same time, such as --timeout, is one failure") {
  Scene scene(2);
  scene.run_two();
  scene.say(1, Ended{0, Scene::failure(1000, "--timeout: 5 s have passed", "timed_out"), {}});
  scene.say(2, Ended{0, Scene::failure(1001, "--timeout: 5 s have passed", "timed_out"), {}});
  CHECK(scene.last<Over>(1)->failure->block == "--timeout: 5 s have passed\n");
}

TEST_CASE("the others call the roll before they stop when the ranks as a whole are the cause") {
  for (const char* cause : {"hung", "early_exit", "exited"}) {
    CAPTURE(cause);
    Scene scene(2);
    scene.run_two();
    scene.say(1, Failed{0, Scene::failure(1000, "why", cause)});
    REQUIRE(scene.last<Stop>(2) != nullptr);
    CHECK(scene.last<Stop>(2)->call_roll == (std::string(cause) != "exited"));
  }
}

TEST_CASE("a node that tells what its ranks do hears what those of the others do") {
  Scene scene(2);
  scene.run_two();
  scene.say(1, Signs{0, {.silent = 9s}});
  REQUIRE(scene.last<Signs>(1) != nullptr);
  CHECK(scene.last<Signs>(1)->of.silent == Clock::duration());  // the other one has told nothing so far
  CHECK(scene.last<Signs>(1)->of.excuses_steps);
  scene.say(2, Signs{0, {.silent = 7s, .unmatched = {8s}}});
  CHECK(scene.last<Signs>(2)->of.silent == Clock::duration(9s));
  scene.say(1, Signs{0, {.silent = 10s}});
  CHECK(scene.last<Signs>(1)->of.silent == Clock::duration(7s));
  CHECK(scene.last<Signs>(1)->of.unmatched == std::vector<Clock::duration>{8s});
  scene.say(2, Ended{});
  scene.now += 2s;
  scene.say(1, Signs{0, {.silent = 12s}});
  CHECK(scene.last<Signs>(1)->of.silent == Clock::duration(2s));  // their end was a sign of life
  CHECK(scene.last<Signs>(1)->of.unmatched == std::vector<Clock::duration>{2s});
  scene.say(2, Signs{0, {.silent = 1s}});  // its ranks have left a process behind, which works
  scene.say(1, Signs{0, {.silent = 12s}});
  CHECK(scene.last<Signs>(1)->of.silent == Clock::duration(1s));
}

TEST_CASE("signs of an attempt that is over are not heard") {
  Scene scene(2);
  scene.run_two();
  const std::size_t before = scene.told[1].size();
  scene.say(1, Signs{3, {}});
  CHECK(scene.told[1].size() == before);
}

TEST_CASE("the first rank of the run that finishes is told to the other nodes, and a signal is") {
  Scene scene(2);
  scene.run_two();
  scene.say(1, Finished{0, 1});
  REQUIRE(scene.last<Finished>(2) != nullptr);
  CHECK(scene.last<Finished>(2)->rank == 1);
  scene.say(2, Finished{0, 2});
  CHECK(scene.last<Finished>(1) == nullptr);
  scene.say(2, Signalled{0, 20});
  REQUIRE(scene.last<Signalled>(1) != nullptr);
  CHECK(scene.last<Signalled>(1)->signal == 20);
  CHECK(scene.last<Signalled>(2) == nullptr);
}

TEST_CASE("SIGCONT is told to the others only when the run is suspended") {
  Scene scene(2);
  scene.run_two();
  scene.say(2, Signalled{0, SIGCONT});
  CHECK(scene.last<Signalled>(1) == nullptr);
  scene.say(2, Signalled{0, SIGTSTP});
  scene.say(1, Signalled{0, SIGCONT});
  REQUIRE(scene.last<Signalled>(2) != nullptr);
  CHECK(scene.last<Signalled>(2)->signal == SIGCONT);
}

TEST_CASE("Ctrl-Z in the pause before a restart holds the restart until SIGCONT, and the pause by as long") {
  Scene scene(2, {.most = 1, .first_delay = 3s});
  scene.run_two();
  scene.say(1, Ended{0, Scene::failure(1000, "rank 0 exited with code 3"), {}});
  scene.say(2, Ended{});
  REQUIRE(scene.last<Again>(2) != nullptr);
  scene.say(1, Scene::ready({6070, 6071}, 1));
  scene.say(2, Scene::ready({7070}, 1));
  scene.now += 1s;
  scene.say(2, Signalled{1, SIGTSTP});
  CHECK_FALSE(scene.coordinator.wake_at());
  scene.now += 1min;
  scene.take(scene.coordinator.woke(scene.now));
  CHECK(scene.last<Start>(1) == nullptr);
  scene.say(2, Signalled{1, SIGCONT});
  CHECK(scene.coordinator.wake_at() == scene.now + 2s);
  scene.now += 2s;
  scene.take(scene.coordinator.woke(scene.now));
  CHECK(scene.last<Start>(1) != nullptr);
}

TEST_CASE("a lost node ends the run of the others, and is named with what was last heard") {
  Scene scene(2);
  scene.run_two();
  scene.now += 1min;
  scene.lose(2, 4500ms);
  REQUIRE(scene.last<Stop>(1) != nullptr);
  scene.say(1, Ended{});
  REQUIRE(scene.last<Over>(1) != nullptr);
  CHECK(scene.last<Over>(1)->failure->line ==
        "lost node 1 (10.0.0.9, host): no answer for 4 s; last heard 4.5 s ago");
  CHECK(scene.last<Over>(1)->failure->exit_code == 75);
  CHECK(scene.last<Over>(1)->failure->cause == "node_lost");
}

TEST_CASE("a failure before the loss of its node stays the cause") {
  Scene scene(2);
  scene.run_two();
  scene.say(2, Failed{0, Scene::failure(5, "rank 2 was killed by SIGKILL (9)", "killed")});
  scene.now += 1min;
  scene.lose(2, 1s);
  scene.say(1, Ended{});
  CHECK(scene.last<Over>(1)->failure->line == "rank 2 was killed by SIGKILL (9)");
}

TEST_CASE("hunt 9: a node that is lost after a failure is named as the reason why there is no restart") {
  Scene scene(2, {.most = 3});
  scene.run_two();
  const NodeFailure failure = Scene::failure(5, "rank 2 exited with code 3");
  scene.say(2, Failed{0, failure});
  scene.lose(2, 4s);
  scene.say(1, Ended{.attempt = 0, .failure = {}, .ranks = {}});
  REQUIRE(scene.last<Over>(1) != nullptr);
  CHECK(scene.last<Over>(1)->failure->line == "rank 2 exited with code 3");
  CHECK(scene.last<Over>(1)->failure->block ==
        "rank 2 exited with code 3\n"
        "fleetrun: then lost node 1 (10.0.0.9, host): no answer for 4 s; last heard 4.0 s ago\n"
        "fleetrun: no restart, because the run needs all its nodes\n");
}

TEST_CASE("hunt 11: another node that is lost after a failure is named, too") {
  Scene scene(2, {.most = 3, .never_after = {3}});
  scene.run_two();
  const NodeFailure failure = Scene::failure(5, "rank 0 exited with code 3");
  scene.say(1, Failed{0, failure});
  scene.lose(2, 4s);
  scene.say(1, Ended{.attempt = 0, .failure = failure, .ranks = {}});
  REQUIRE(scene.last<Over>(1) != nullptr);
  CHECK(scene.last<Over>(1)->failure->block ==
        "rank 0 exited with code 3\n"
        "fleetrun: then lost node 1 (10.0.0.9, host): no answer for 4 s; last heard 4.0 s ago\n");
}

// How a run of two nodes ends if rank 0 failed some time ago, and then node 1 is lost.
NodeFailure end_after(Clock::duration failed_ago, const std::function<void(Scene& scene)>& lose) {
  Scene scene(2);
  scene.run_two();
  scene.now += 1min;
  const auto failed_at = (scene.now - failed_ago).time_since_epoch() / std::chrono::nanoseconds(1);
  const NodeFailure failure = Scene::failure(failed_at, "rank 0 exited with code 3");
  scene.say(1, Failed{0, failure});
  lose(scene);
  scene.say(1, Ended{.attempt = 0, .failure = failure, .ranks = {}});
  REQUIRE(scene.last<Over>(1) != nullptr);
  return *scene.last<Over>(1)->failure;
}

TEST_CASE(
    "hunt 22: a node that left after a rank had failed is not the cause, however long ago it was heard") {
  const NodeFailure end = end_after(900ms, [](Scene& scene) {
    scene.take(scene.coordinator.lost(2, "it left", scene.now - 950ms, scene.now, true));
  });
  CHECK(end.line == "rank 0 exited with code 3");
  CHECK(end.block.find("fleetrun: then lost node 1") != std::string::npos);
}

TEST_CASE("hunt 22: of a node that fell silent, nobody knows whether it was lost before a rank failed") {
  const NodeFailure end = end_after(3500ms, [](Scene& scene) { scene.lose(2, 4s); });
  CHECK(end.cause == "node_lost");
  CHECK(end.block.find("fleetrun: rank 0 exited with code 3 at the same time") != std::string::npos);
}

TEST_CASE("messages of an earlier attempt change nothing") {
  Scene scene(2, {.most = 1, .first_delay = 0s});
  scene.run_two();
  scene.say(2, Ended{0, Scene::failure(100, "rank 2 exited with code 3"), {}});
  scene.say(1, Ended{});
  scene.say(1, Failed{0, Scene::failure(100, "late")});
  scene.say(1, Scene::ready({1, 2}, 1));
  scene.say(2, Scene::ready({3}, 1));
  CHECK(scene.last<Start>(1) != nullptr);
}

TEST_CASE("a signal that a node gets before it reads of the next attempt ends the run") {
  Scene scene(2, {.most = 1, .first_delay = 0s});
  scene.run_two();
  scene.say(2, Ended{0, Scene::failure(100, "rank 2 exited with code 3"), {}});
  scene.say(1, Ended{});
  REQUIRE(scene.last<Again>(2) != nullptr);
  scene.say(2, Failed{0, Scene::failure(100, "stopped by SIGTERM (15) on node 1", "stopped")});
  REQUIRE(scene.last<Over>(1) != nullptr);
  CHECK(scene.last<Over>(1)->failure->line == "stopped by SIGTERM (15) on node 1");
}

TEST_CASE("the echo of a beat carries the coordinator's time") {
  Scene scene(2);
  scene.say(1, Beat{42});
  REQUIRE(scene.last<Echo>(1) != nullptr);
  CHECK(scene.last<Echo>(1)->sent == 42);
  CHECK(scene.last<Echo>(1)->received == std::chrono::nanoseconds(1h).count());
}

TEST_CASE("1,024 nodes of 8 ranks take less than 32 KiB each") {
  constexpr int kNodes = 1024, kRanks = 8;
  Join join = Scene::join(kRanks);
  for (int term = 0; term < 100; ++term)
    join.terms.emplace_back(fmt::format("a key of job.json, number {}", term), "its value, somewhat long");
  const std::size_t before = ::mallinfo2().uordblks;
  Coordinator coordinator({.nodes = kNodes, .run_id = "run"}, kStart);
  std::size_t most = 0;
  const auto say = [&](PeerId peer, const FromNode& message) {
    std::vector<std::string> sent;  // what no node has read yet
    for (const auto& action : coordinator.on(peer, message, kStart))
      if (const auto* tell = std::get_if<Coordinator::Tell>(&action)) sent.push_back(encode(tell->message));
    most = std::max(most, ::mallinfo2().uordblks - before);
  };
  for (PeerId peer = 1; peer <= kNodes; ++peer) say(peer, join);
  for (PeerId peer = 1; peer <= kNodes; ++peer)
    say(peer, Scene::ready(std::vector<std::uint16_t>(kRanks, 6070)));
  CHECK(most / kNodes < 32 * 1024);
}

TEST_CASE("a node can be asked from its place on until it is lost") {
  Scene scene(2);
  const Placed placed = {.nodes = std::vector<NodePlace>(
                             2, {.address = "10.0.0.9", .host = "host", .logs = "", .device_ids = {}})};
  scene.say(1, Scene::join(2, 0));
  CHECK_FALSE(scene.coordinator.peer_of(placed, 0));
  scene.say(2, Scene::join(1, 1));
  CHECK(scene.coordinator.peer_of(placed, 0) == 1);
  CHECK(scene.coordinator.peer_of(placed, 1) == 2);
  CHECK_FALSE(scene.coordinator.peer_of(placed, 2));
  CHECK_FALSE(scene.coordinator.peer_of(placed, -1));
  scene.say(1, Scene::ready({6070, 6071}));
  scene.say(2, Scene::ready({7070}));
  scene.lose(2, 4s);
  CHECK_FALSE(scene.coordinator.peer_of(placed, 1));
  CHECK(scene.coordinator.peer_of(placed, 0) == 1);
}

}  // namespace
}  // namespace fleetrun::launch::coordinator_test
