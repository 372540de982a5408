#include "launch/nodes/succession.h"

#include <doctest/doctest.h>

namespace fleetrun::launch::succession_test {
namespace {

using namespace std::chrono_literals;

const TimePoint kLost = TimePoint() + std::chrono::hours(1);
constexpr auto kTurn = Succession::kTurn;

TEST_CASE("the next node serves at once, and the others ask it") {
  CHECK(Succession(4, 1, kLost).plan(kLost).serve);
  CHECK(Succession(4, 2, kLost).plan(kLost).ask == std::vector<int>{1});
  CHECK(Succession(4, {}, kLost).plan(kLost).ask == std::vector<int>{1});
}

TEST_CASE("when the next node does not answer, the one after it has its turn") {
  const Succession second(4, 2, kLost), third(4, 3, kLost);
  CHECK_FALSE(second.plan(kLost + kTurn - 1ms).serve);
  CHECK(second.plan(kLost + kTurn).serve);
  CHECK(third.plan(kLost + kTurn).ask == std::vector<int>{1, 2});
  CHECK(third.plan(kLost + 2 * kTurn).serve);
}

TEST_CASE("at most three nodes have turns, and the others give up one turn later") {
  const Succession fifth(9, 5, kLost);
  CHECK(fifth.plan(kLost + 4 * kTurn - 1ms).ask == std::vector<int>{1, 2, 3});
  CHECK_FALSE(fifth.plan(kLost + 4 * kTurn - 1ms).gave_up);
  CHECK(fifth.plan(kLost + 4 * kTurn).gave_up);
  CHECK_FALSE(fifth.plan(kLost + 20 * kTurn).serve);
}

TEST_CASE("a node that cannot serve asks the others, and a run of one node has nobody to ask") {
  Succession first(3, 1, kLost);
  first.pass_own_turn();
  CHECK(first.plan(kLost + kTurn).ask == std::vector<int>{1, 2});
  CHECK(Succession(1, {}, kLost).plan(kLost + kTurn).gave_up);
}

}  // namespace
}  // namespace fleetrun::launch::succession_test
