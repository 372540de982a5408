// Which cause a run has if its first node is lost while the ranks of another node end.
#include "launch/nodes/attempt_end.h"

#include <utility>

#include <doctest/doctest.h>

namespace fleetrun::launch::attempt_end_test {
namespace {

const TimePoint kHeard = TimePoint() + std::chrono::hours(1);  // when this node last heard the first one
const TimePoint kBefore = kHeard - std::chrono::milliseconds(1);

const NodeFailure kLoss = {
    .cause = "node_lost", .line = "lost node 0", .block = "fleetrun: lost node 0\n", .exit_code = 75};

NodeFailure exited(const std::string& line = "rank 1 exited with code 80") {
  return {.cause = "exited", .line = line, .block = "fleetrun: " + line + "\n", .exit_code = 80, .rank = 1};
}

NodeFailure stopped() {
  return {.cause = "stopped",
          .line = "stopped by SIGINT (2)",
          .block = "fleetrun: stopped by SIGINT (2)\n",
          .exit_code = 130,
          .signal = 2};
}

TEST_CASE("without an end of the ranks, the loss is the cause") {
  AttemptEnd ending;
  CHECK(ending.before(kLoss, kHeard).line == "lost node 0");
  ending.happened_here(exited(), kBefore);
  ending.forget();
  CHECK(ending.before(kLoss, kHeard).line == "lost node 0");
}

TEST_CASE("hunt 151: what somebody asked of this node is unheard until a message comes from the first node") {
  AttemptEnd ending;
  ending.happened_here(exited(), kBefore);
  CHECK(ending.unheard_wish(kBefore) == nullptr);
  ending.happened_here(stopped(), kHeard);
  REQUIRE(ending.unheard_wish(kBefore) != nullptr);
  CHECK(ending.unheard_wish(kBefore)->exit_code == 130);
  CHECK(ending.unheard_wish(kHeard + std::chrono::milliseconds(1)) == nullptr);
  ending.forget();
  CHECK(ending.unheard_wish(kBefore) == nullptr);
}

TEST_CASE("a failure here is the cause if the first node was heard after it") {
  AttemptEnd ending;
  ending.happened_here(exited(), kBefore);
  const NodeFailure cause = ending.before(kLoss, kHeard);
  CHECK(cause.line == "rank 1 exited with code 80; then lost node 0");
  CHECK(cause.block == "fleetrun: rank 1 exited with code 80\nfleetrun: then lost node 0\n");
  CHECK(cause.cause == "exited");
  CHECK(cause.exit_code == 80);
  CHECK(cause.rank == 1);
}

TEST_CASE(
    "the loss is the cause if a failure here may follow from it, and the text names the failure first") {
  const NodeFailure reset =
      exited("rank 1 exited with code 1: ConnectionResetError: [Errno 104] Connection reset by peer");
  for (const auto& failure : {std::pair(exited(), kHeard), std::pair(reset, kBefore)}) {
    const std::string line = failure.first.line;
    CAPTURE(line);
    AttemptEnd ending;
    ending.happened_here(failure.first, failure.second);
    const NodeFailure cause = ending.before(kLoss, kHeard);
    CHECK(cause.line == "lost node 0");
    CHECK(cause.block == "fleetrun: " + line + "\nfleetrun: lost node 0\n");
    CHECK(cause.exit_code == 75);
    CHECK_FALSE(cause.rank);
  }
}

TEST_CASE("the end of the log of a rank tells that its failure follows from the loss") {
  AttemptEnd ending;
  ending.happened_here(exited(), kBefore);
  ending.know_more({.failure = exited("rank 1 exited with code 1: ConnectionResetError")});
  CHECK(ending.before(kLoss, kHeard).exit_code == 75);
}

TEST_CASE("what the first node has told happened before its loss, unless it is a loss or no failure") {
  AttemptEnd hung;
  hung.was_told({"no output for 60 s", 75, true, 0, "hung", {}});
  CHECK(hung.before(kLoss, kHeard).cause == "hung");
  CHECK(hung.before(kLoss, kHeard).line == "no output for 60 s; then lost node 0");
  for (const Stop& stop : {Stop{"lost node 2", 75, false, 0, "node_lost", {}},
                           Stop{"the ranks start again to take in 10.0.0.9", 75, false}}) {
    AttemptEnd ending;
    ending.was_told(stop);
    CHECK(ending.before(kLoss, kHeard).line == "lost node 0");
    CHECK(ending.before(kLoss, kHeard).block == "fleetrun: " + stop.why + "\nfleetrun: lost node 0\n");
  }
}

TEST_CASE("what somebody asked for is the cause if nothing failed before it") {
  AttemptEnd ending;
  ending.happened_here(stopped(), kBefore);
  ending.happened_here(exited(), kBefore);
  CHECK(ending.is_wished());
  CHECK(ending.before(kLoss, TimePoint()).line == "stopped by SIGINT (2); then lost node 0");
  CHECK(ending.before(kLoss, TimePoint()).exit_code == 130);
}

TEST_CASE(
    "what somebody asked for after a failure does not hide the failure, and the run still ends for good") {
  const Stop failure = {"rank 7 exited with code 3", 3, false, 0, "exited", 7};
  AttemptEnd told, crossed, late;
  told.was_told(failure);
  told.happened_here(stopped(), kBefore);
  crossed.happened_here(stopped(), kBefore);
  crossed.was_told(failure);
  late.was_told(failure);
  late.know_more({.failure = {}, .no_restart = true});
  for (const AttemptEnd& ending : {told, crossed, late}) {
    CHECK(ending.is_wished());
    CHECK(ending.before(kLoss, kHeard).exit_code == 3);
  }
}

TEST_CASE("what somebody asks for while the ranks end to start again with another node is the cause") {
  AttemptEnd ending;
  ending.was_told({"the ranks start again to take in 10.0.0.9", 75, false});
  ending.happened_here(stopped(), kBefore);
  CHECK(ending.before(kLoss, kHeard).exit_code == 130);
}

TEST_CASE("a failure of this node stays if the first node then tells of another lost node") {
  AttemptEnd ending;
  ending.happened_here(exited(), kBefore);
  ending.was_told({"lost node 2", 75, false, 0, "node_lost", {}});
  CHECK(ending.before(kLoss, kHeard).exit_code == 80);
}

TEST_CASE("a failure that the first node has told replaces one of this node, and not the other way round") {
  AttemptEnd ending;
  ending.happened_here(exited(), kBefore);
  ending.was_told({"rank 7 exited with code 3", 3, false, 0, "exited", 7});
  ending.happened_here(exited(), kBefore);
  ending.know_more({.failure = exited("rank 1 exited with code 80: ValueError")});
  CHECK(ending.before(kLoss, kHeard).rank == 7);
}

}  // namespace
}  // namespace fleetrun::launch::attempt_end_test
