#include "runtime/tune/halving.h"

#include <doctest/doctest.h>

#include <map>
#include <random>
#include <set>

namespace fleetrun::runtime::halving_test {
namespace {

std::string setting(const std::string& name) { return name + "=true"; }

std::vector<Candidate> named(const std::vector<std::string>& names) {
  std::vector<Candidate> candidates;
  candidates.reserve(names.size());
  for (const std::string& name : names) candidates.push_back({name, {setting(name)}});
  return candidates;
}

// Given times: each setting multiplies the time of a step, and each turn has its noise.
struct GivenTimes {
  std::map<std::string, double> factors;             // by setting
  double noise = 0;                                  // standard deviation
  std::vector<std::vector<std::string>> asked = {};  // the names of each call
  std::vector<int> turns = {};
  std::mt19937 random = std::mt19937(3);

  double factor(const Candidate& candidate) const {
    double product = 1;
    for (const std::string& each : candidate.settings)
      if (const auto found = factors.find(each); found != factors.end()) product *= found->second;
    return product;
  }

  Measure measure() {
    return [this](const Candidate& base, const std::vector<Candidate>& candidates, int number) {
      Measured found;
      asked.emplace_back();
      turns.push_back(number);
      std::normal_distribution<double> factor_of_noise(1, noise);
      for (const Candidate& candidate : candidates) {
        asked.back().push_back(candidate.name);
        found.ratios.emplace_back();
        if (factor(candidate) == 0) continue;  // it does the same as the base
        for (int turn = 0; turn < number; ++turn)
          found.ratios.back().push_back(factor(candidate) / factor(base) *
                                        (noise > 0 ? factor_of_noise(random) : 1));
      }
      found.seconds = 1.0 * number * static_cast<double>(candidates.size() + 1);
      return found;
    };
  }
};

const std::vector<std::string> kNames = {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"};

TEST_CASE("each round keeps the faster half, and the best one is confirmed in turns of its own") {
  GivenTimes times{.factors = {{"d=true", 0.9}, {"g=true", 1.2}}};
  const SearchResult result =
      find_fastest(named(kNames), {.seconds = 1000, .turn_seconds = 1}, times.measure());
  CHECK(result.winner.name == "d");
  REQUIRE(result.confirmed);
  CHECK(result.confirmed->ratio == doctest::Approx(0.9));
  CHECK(result.confirmed->turns >= kConfirmingTurns);
  CHECK(result.tried.front().name == "d");
  CHECK(result.tried.back().name == "g");
  REQUIRE(times.asked.size() > 2);
  CHECK(times.asked[0].size() == 12);
  CHECK(times.asked[1].size() == 6);
  CHECK(times.asked[2].size() == 3);
  CHECK(times.asked.back() == std::vector<std::string>{"d"});
  CHECK(times.turns[1] > times.turns[0]);  // half as many candidates, for the same time
}

TEST_CASE("the best changes are tried together") {
  GivenTimes times{.factors = {{"a=true", 0.95}, {"f=true", 0.9}, {"k=true", 0.97}}};
  const SearchResult result =
      find_fastest(named(kNames), {.seconds = 1000, .turn_seconds = 1}, times.measure());
  CHECK(result.winner.name == "f + a + k");
  CHECK(result.winner.settings == std::vector<std::string>{"a=true", "f=true", "k=true"});
  CHECK(result.confirmed->ratio == doctest::Approx(0.95 * 0.9 * 0.97));
}

TEST_CASE("when nothing is faster the job stays as it is") {
  GivenTimes times{.factors = {{"a=true", 1.1}}};
  const SearchResult result =
      find_fastest(named({"a"}), {.seconds = 1000, .turn_seconds = 1}, times.measure());
  CHECK(result.winner.is_default());
  CHECK_FALSE(result.confirmed);
}

TEST_CASE("luck in the rounds is not enough: most searches among equals keep the unchanged job") {
  int changed = 0;
  for (unsigned seed = 0; seed < 200; ++seed) {
    GivenTimes times{.factors = {}, .noise = 0.05, .random = std::mt19937(seed)};
    const SearchResult result =
        find_fastest(named(kNames), {.seconds = 600, .turn_seconds = 1}, times.measure());
    changed += !result.winner.is_default();
    if (!result.winner.is_default()) CHECK(result.confirmed->interval.high < 1);
  }
  CHECK(changed < 200 * 0.1);  // two attempts at 2.5 % each
}

TEST_CASE("in noise of 5 % a change of 10 % is found") {
  int found = 0;
  for (unsigned seed = 0; seed < 50; ++seed) {
    GivenTimes times{.factors = {{"d=true", 0.9}}, .noise = 0.05, .random = std::mt19937(seed)};
    const SearchResult result =
        find_fastest(named(kNames), {.seconds = 600, .turn_seconds = 1}, times.measure());
    const auto& settings = result.winner.settings;
    found += std::find(settings.begin(), settings.end(), "d=true") != settings.end();
  }
  CHECK(found > 47);
}

TEST_CASE("the budget holds, and says what it leaves out") {
  GivenTimes times{.factors = {{"a=true", 0.8}}};
  const SearchBudget budget = {.seconds = 100, .turn_seconds = 1};
  const SearchResult result = find_fastest(named(kNames), budget, times.measure());
  CHECK(result.winner.name == "a");
  CHECK(result.left_out == std::vector<std::string>{"i", "j", "k", "l"});
  CHECK(result.spent_seconds <= budget.seconds);
}

TEST_CASE("a budget that does not allow one candidate leaves the unchanged job, without a step") {
  GivenTimes times{.factors = {{"a=true", 0.8}}};
  const SearchResult result =
      find_fastest(named(kNames), {.seconds = 10, .turn_seconds = 1}, times.measure());
  CHECK(result.winner.is_default());
  CHECK(result.left_out == kNames);
  CHECK(times.asked.empty());
}

TEST_CASE("candidates that change nothing are named and not measured again") {
  GivenTimes times{.factors = {{"a=true", 0}, {"b=true", 0.9}}};
  const SearchResult result =
      find_fastest(named({"a", "b", "c", "d"}), {.seconds = 500, .turn_seconds = 1}, times.measure());
  CHECK(result.same == std::vector<std::string>{"a"});
  CHECK(times.asked[1] == std::vector<std::string>{"b", "c", "d"});
}

TEST_CASE("an explanation takes each setting out of the winner") {
  GivenTimes times{.factors = {{"a=true", 0.8}, {"b=true", 1}}};
  const Candidate winner = {"both", {setting("a"), setting("b")}};
  const std::vector<Effect> effects = explain(winner, {.seconds = 200, .turn_seconds = 1}, times.measure());
  REQUIRE(effects.size() == 2);
  CHECK(effects[0].name == "a=true");
  CHECK(effects[0].ratio == doctest::Approx(1 / 0.8));  // slower without it
  CHECK(effects[0].is_slower());
  CHECK(effects[1].ratio == doctest::Approx(1));
  CHECK(explain({}, {.seconds = 200, .turn_seconds = 1}, times.measure()).empty());
}

}  // namespace
}  // namespace fleetrun::runtime::halving_test
