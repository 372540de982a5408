#include "launch/doctor/tournament.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

namespace fleetrun::launch::tournament_test {
namespace {

std::vector<int> numbers(int count) {
  std::vector<int> all;
  for (int i = 0; i < count; ++i) all.push_back(i);
  return all;
}

TEST_CASE("with enough rounds every pair meets once, and nobody twice in a round") {
  for (const int nodes : {2, 3, 4, 5, 8}) {
    std::set<Pair> met;
    for (const auto& round : plan_tournament(numbers(nodes), 100)) {
      std::set<int> busy;
      for (const auto& [one, other] : round) {
        CHECK(busy.insert(one).second);
        CHECK(busy.insert(other).second);
        CHECK(met.insert(std::minmax(one, other)).second);
      }
    }
    CHECK(std::ssize(met) == nodes * (nodes - 1) / 2);
  }
}

TEST_CASE("a large tournament has as many rounds as allowed, and every node plays in each") {
  const auto rounds = plan_tournament(numbers(100), 7);
  CHECK(rounds.size() == 7);
  for (const auto& round : rounds) CHECK(round.size() == 50);
}

TEST_CASE("one node alone has nobody to play with") { CHECK(plan_tournament({4}, 7).empty()); }

}  // namespace
}  // namespace fleetrun::launch::tournament_test
