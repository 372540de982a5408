#include "launch/supervise/straggler_rules.h"

#include <algorithm>
#include <functional>
#include <random>
#include <vector>

#include <doctest/doctest.h>

namespace fleetrun::launch::straggler_rules_test {
namespace {

using namespace std::chrono_literals;

constexpr std::int64_t kMillisecond = 1'000'000;

struct OwnMs {
  double data = 0, compute = 0;
};

// Ranks that are looked at once a second. They wait for the slowest of them in each step, and then communicate for 5 ms.
class Scene {
 public:
  explicit Scene(std::size_t ranks) : ranks_(ranks, StepTimes{.training = true}) { look(); }

  // What is found within `time`, if this is the own time of a rank in a step.
  std::vector<Straggler> pass(Clock::duration time, const std::function<OwnMs(std::size_t rank)>& own) {
    std::vector<Straggler> found;
    for (const TimePoint end = now_ + time; now_ < end;) {
      for (const TimePoint next = now_ + 1s; now_ < next;) step(own);
      const std::vector<Straggler> more = look();
      found.insert(found.end(), more.begin(), more.end());
    }
    return found;
  }
  std::vector<Straggler> look() { return rules.look(ranks_, now_); }
  std::vector<StepTimes>& ranks() { return ranks_; }

  StragglerRules rules{20s};

 private:
  void step(const std::function<OwnMs(std::size_t rank)>& own) {
    std::vector<OwnMs> times;
    double longest = 0;
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      times.push_back(own(rank));
      longest = std::max(longest, times.back().data + times.back().compute);
    }
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      const auto [data, compute] = times[rank];
      ++ranks_[rank].steps;
      ranks_[rank].data_ns += static_cast<std::int64_t>(data * kMillisecond);
      ranks_[rank].compute_ns += static_cast<std::int64_t>(compute * kMillisecond);
      ranks_[rank].communication_ns +=
          static_cast<std::int64_t>((longest + 5 - data - compute) * kMillisecond);
    }
    now_ += std::chrono::microseconds(static_cast<int>((longest + 5) * 1000));
  }

  std::vector<StepTimes> ranks_;
  TimePoint now_{};
};

TEST_CASE("a rank that computes longer than the others is found once, after the wanted time") {
  Scene scene(4);
  const auto slow = [](std::size_t rank) { return OwnMs{1, rank == 2 ? 30.0 : 19.0}; };
  CHECK(scene.pass(19s, slow).empty());
  const std::vector<Straggler> found = scene.pass(6s, slow);
  REQUIRE(found.size() == 1);
  CHECK(found[0].rank == 2);
  CHECK(found[0].phase == TimeUse::compute);
  CHECK(found[0].own_ms == doctest::Approx(31));
  CHECK(found[0].median_ms == doctest::Approx(20));
  CHECK(found[0].factor() == doctest::Approx(1.55));
  CHECK(scene.pass(120s, slow).empty());
}

TEST_CASE("a rank that waits for data longer than the others is slow in data") {
  Scene scene(4);
  const std::vector<Straggler> found = scene.pass(26s, [](std::size_t rank) {
    return OwnMs{rank == 0 ? 20.0 : 1.0, 20};
  });
  REQUIRE(found.size() == 1);
  CHECK(found[0].rank == 0);
  CHECK(found[0].phase == TimeUse::data);
}

TEST_CASE("of two ranks the faster one is the standard") {
  Scene scene(2);
  const std::vector<Straggler> found = scene.pass(26s, [](std::size_t rank) {
    return OwnMs{0, rank == 1 ? 15.0 : 10.0};
  });
  REQUIRE(found.size() == 1);
  CHECK(found[0].rank == 1);
}

TEST_CASE("half of the ranks may be slow, and a single rank is never slow") {
  Scene half(8);
  CHECK(half.pass(26s, [](std::size_t rank) { return OwnMs{0, rank < 4 ? 15.0 : 10.0}; }).size() == 4);
  Scene single(1);
  CHECK(single.pass(26s, [](std::size_t) { return OwnMs{50, 10}; }).empty());
}

TEST_CASE("a rank that is slower by less than 20 % is none") {
  Scene scene(4);
  CHECK(scene.pass(120s, [](std::size_t rank) { return OwnMs{0, rank == 1 ? 23.0 : 20.0}; }).empty());
}

TEST_CASE("a rank whose difference is small beside the communication is none") {
  Scene scene(4);
  CHECK(scene.pass(120s, [](std::size_t rank) { return OwnMs{0, rank == 1 ? 1.5 : 1.0}; }).empty());
}

TEST_CASE("a rank that is slow for a while is none") {
  Scene scene(4);
  const auto slow = [](std::size_t rank) { return OwnMs{0, rank == 1 ? 40.0 : 20.0}; };
  const auto equal = [](std::size_t) { return OwnMs{0, 20}; };
  for (int i = 0; i < 10; ++i) {
    CHECK(scene.pass(12s, slow).empty());
    CHECK(scene.pass(7s, equal).empty());
  }
}

// Each second other programs take time away from two of the ranks, as on a host with too few cores.
TEST_CASE("noise that hits one rank after the other makes none of them a straggler") {
  Scene scene(4);
  std::mt19937 random(7);
  std::exponential_distribution<double> noise(1.0 / 8);
  for (int second = 0; second < 3600; ++second) {
    const std::vector<double> lost = {noise(random), noise(random), noise(random), noise(random)};
    CHECK(scene.pass(1s, [&](std::size_t rank) { return OwnMs{0, 20 + lost[rank]}; }).empty());
  }
}

TEST_CASE("a window waits until every rank has done five steps") {
  Scene scene(2);
  const auto slow = [](std::size_t rank) { return OwnMs{0, rank == 1 ? 3000.0 : 1000.0}; };
  CHECK(scene.pass(55s, slow).empty());
  CHECK(scene.pass(10s, slow).size() == 1);
}

TEST_CASE("nothing is judged while a rank does not train, and a new attempt starts afresh") {
  Scene scene(4);
  const auto slow = [](std::size_t rank) { return OwnMs{0, rank == 2 ? 30.0 : 20.0}; };
  scene.ranks()[0].training = false;
  CHECK(scene.pass(60s, slow).empty());
  scene.ranks()[0].training = true;
  CHECK(scene.pass(26s, slow).size() == 1);
  scene.rules.begin_attempt();
  for (StepTimes& rank : scene.ranks()) rank = {.training = true};
  scene.look();
  CHECK(scene.pass(19s, slow).empty());
  CHECK(scene.pass(7s, slow).size() == 1);
}

}  // namespace
}  // namespace fleetrun::launch::straggler_rules_test
