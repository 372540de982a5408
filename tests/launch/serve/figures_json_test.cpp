#include "launch/serve/figures_json.h"

#include <doctest/doctest.h>

#include <cmath>

#include "base/json/json_reader.h"

namespace fleetrun::launch::figures_json_test {
namespace {

std::vector<RankMetrics> through_json(const std::vector<RankMetrics>& ranks) {
  const JsonDocument document = read_json(to_json(figures_json(ranks)));
  REQUIRE(document.problems.empty());
  return read_figures(document.root);
}

TEST_CASE("figures arrive as they were sent, a loss that is no number too") {
  RankMetrics rank = {.up = true, .communication_share = 0.125, .heartbeat_age = 0.1};
  rank.progress = Progress{.phase = Phase::training,
                           .epoch = 1,
                           .epochs = 2,
                           .step = 1ULL << 40,
                           .steps = 7,
                           .loss = std::nan(""),
                           .images_per_second = INFINITY};
  rank.spent_ns = {1, 2, 3, 4, 5, 6};
  rank.gpu = {.busy_percent = 0, .memory_used = 1LL << 36, .celsius = 61};
  const auto read = through_json({rank, {.up = false, .exit_code = 137}});
  REQUIRE(read.size() == 2);
  CHECK(read[0].up);
  CHECK_FALSE(read[0].exit_code);
  CHECK(read[0].spent_ns == rank.spent_ns);
  CHECK(read[0].communication_share == 0.125);
  CHECK(read[0].heartbeat_age == 0.1);
  CHECK(read[0].gpu == rank.gpu);
  CHECK(read[1].gpu == GpuLoad());
  REQUIRE(read[0].progress);
  CHECK(read[0].progress->phase == Phase::training);
  CHECK(read[0].progress->step == 1ULL << 40);
  CHECK(std::isnan(read[0].progress->loss));
  CHECK(std::isinf(read[0].progress->images_per_second));
  CHECK(read[1].exit_code == 137);
  CHECK_FALSE(read[1].progress);
}

TEST_CASE("what is missing or of another kind counts as 0") {
  const auto read = read_figures(
      read_json(
          R"({"figures": [{}, 7, {"up": 1, "progress": {"phase": 99, "loss": []}, "spent_ns": ["x"]}]})")
          .root);
  REQUIRE(read.size() == 3);
  CHECK_FALSE(read[2].up);
  CHECK(read[2].progress->phase == Phase::finished);
  CHECK(read[2].spent_ns[0] == 0);
  CHECK(read_figures(JsonValue()).empty());
}

}  // namespace
}  // namespace fleetrun::launch::figures_json_test
