#include "runtime/plan/layouts.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <optional>

namespace fleetrun::runtime::layouts_test {
namespace {

constexpr double kGiB = 1 << 30;

// 8 GFLOP in the forward part, which `stages` divide evenly.
LayoutCosts equal_stages(int stages) {
  LayoutCosts costs = {.gradient_bytes = 8e8, .micro_batches = stages == 1 ? 1 : 4 * stages};
  costs.stages.assign(static_cast<std::size_t>(stages), {.parameter_bytes = 8e8 / stages,
                                                         .gradient_bytes = 8e8 / stages,
                                                         .optimizer_bytes = 16e8 / stages,
                                                         .buffer_bytes = 8e6 / stages,
                                                         .activation_bytes = 4e9,
                                                         .sent_bytes = stages == 1 ? 0 : 8e6,
                                                         .forward = {{.flops = 8e9, .moved_bytes = 8e6}}});
  return costs;
}

std::optional<LayoutCosts> any_layout(const RankLayout& layout) { return equal_stages(layout.pipeline); }

const PlanRequest kMachine = {.hosts = 2,
                              .gpus = 4,
                              .memory_bytes = 32e9,
                              .tflops = 1,
                              .memory_gb_s = 1000,
                              .link_gb_s = 100,
                              .network_gb_s = 10,
                              .latency_us = 0};

constexpr job::StepShares kShares = {.samples = 256, .ranks = 8};

TEST_CASE("the stage that needs the most memory counts, with the batches that it has in memory") {
  LayoutCosts costs = equal_stages(2);
  costs.batches_in_memory = 5;
  costs.stages.front().batch_bytes = 1e9;
  costs.stages.back().activation_bytes = 5e9;
  CHECK(memory_of(costs).buffers == 4e6 + 5e9);
  costs.batches_in_memory = 0;
  CHECK(memory_of(costs).activations == 5e9);
  CHECK(memory_of(costs).all() == doctest::Approx(4e8 + 4e8 + 8e8 + 4e6 + 5e9));
}

TEST_CASE("ranks that communicate in each k-th step wait for a k-th of the sums") {
  LayoutCosts costs = equal_stages(1);
  const double each_step = time_of({.data_parallel = 8}, costs, kMachine).sums;
  costs.steps_per_sum = 4;
  CHECK(time_of({.data_parallel = 8}, costs, kMachine).sums == each_step / 4);
  // Stage 3 gathers the parameters twice in each step: two thirds of its traffic.
  const RankLayout third = {.data_parallel = 8, .sharding = 3, .set = 8};
  const double gathered = time_of(third, equal_stages(1), kMachine).sums,
               merged = time_of(third, costs, kMachine).sums;
  CHECK(merged < gathered * 0.8);
  CHECK(merged > gathered * 0.6);
}

TEST_CASE("sets of sharding that are hosts send only their own part of the gradients between the hosts") {
  const double in_set = 2 * 3.0 / 4 * 8e8 / 100e9, between = 2 * 1.0 / 2 * (8e8 / 4) * 4 / 10e9;
  const RankLayout layout = {.data_parallel = 8, .sharding = 1, .set = 4};
  CHECK(time_of(layout, equal_stages(1), kMachine).sums ==
        doctest::Approx(in_set / 2 + between - 0.016 + in_set / 2));
  const RankLayout pairs = {.data_parallel = 8, .sharding = 3, .set = 2};
  const double in_pair = 2 * 1.0 / 2 * 8e8 / 100e9,
               of_place = 2 * 1.0 / 2 * 4e8 / 100e9 + 2 * 1.0 / 2 * 4e8 * 2 / 10e9;
  CHECK(time_of(pairs, equal_stages(1), kMachine).sums == doctest::Approx(1.5 * in_pair + of_place - 0.024));
}

TEST_CASE("computation is three times the forward part, or as measured") {
  CHECK(time_of({}, equal_stages(1), kMachine).compute == doctest::Approx(3 * 8e-3));
  PlanRequest measured = kMachine;
  measured.step_ms = 40;
  CHECK(time_of({}, equal_stages(1), measured).compute == doctest::Approx(0.04));
  CHECK(time_of({}, equal_stages(1), kMachine).all() ==
        doctest::Approx(0.024));  // alone: nothing to wait for
}

TEST_CASE("a pipeline waits for its first and last micro batch") {
  const RankLayout layout = {.data_parallel = 2, .pipeline = 4, .micro_batches = 16};
  LayoutCosts costs = equal_stages(4);
  const StepTime time = time_of(layout, costs, kMachine);
  CHECK(time.bubble == doctest::Approx(0.024 * 3 / 16));
  CHECK(time.pipeline == doctest::Approx(8e6 / 100e9));
  costs.stages.front().forward.front().flops *= 2;  // the slowest stage
  CHECK(time_of(layout, costs, kMachine).bubble == doctest::Approx(0.048 * 19 / 16 - 0.024 * 5 / 4));
  PlanRequest measured = kMachine;
  measured.step_ms = 40;  // on average
  CHECK(time_of(layout, costs, measured).bubble == doctest::Approx(0.040 * (1.6 * 19 / 16 - 1)));
}

TEST_CASE("gradients are summed inside the hosts, then between them, behind the backward part") {
  const double all_reduce = 2 * 3.0 / 4 * 8e8 / 100e9 + 2 * 1.0 / 2 * 8e8 / 10e9;  // 92 ms
  const LayoutCosts costs = equal_stages(1);
  CHECK(time_of({.data_parallel = 8}, costs, kMachine).sums == doctest::Approx(all_reduce - 0.016));
  CHECK(time_of({.data_parallel = 8, .sharding = 1, .set = 8}, costs, kMachine).sums ==
        doctest::Approx(all_reduce / 2 - 0.016 + all_reduce / 2));
  CHECK(time_of({.data_parallel = 8, .sharding = 3, .set = 8}, costs, kMachine).sums ==
        doctest::Approx(1.5 * all_reduce - 0.024));
  PlanRequest fast = kMachine;
  fast.network_gb_s = 1000, fast.link_gb_s = 1000;
  CHECK(time_of({.data_parallel = 8}, costs, fast).sums ==
        doctest::Approx(0.1 * (2 * 3.0 / 4 + 2 * 1.0 / 2) * 8e8 / 1000e9));  // the last group is never hidden
}

TEST_CASE("with enough memory plain data parallelism wins over a fast network") {
  PlanRequest fast = kMachine;
  fast.network_gb_s = 1000;
  const std::vector<PlannedLayout> planned = plan_layouts(kShares, fast, any_layout);
  CHECK(planned.front().layout == RankLayout{.data_parallel = 8});
  CHECK(planned.front().why.empty());
  CHECK(planned.front().fits);
  for (std::size_t i = 1; i < planned.size(); ++i) CHECK_FALSE(planned[i].why.empty());
}

TEST_CASE("what does not fit comes last and says what it needs") {
  PlanRequest small = kMachine;
  small.memory_bytes = 6 * kGiB;
  const std::vector<PlannedLayout> planned = plan_layouts(kShares, small, any_layout);
  CHECK(planned.front().fits);
  const auto plain = std::find_if(planned.begin(), planned.end(), [](const PlannedLayout& one) {
    return one.layout == RankLayout{.data_parallel = 8};
  });
  REQUIRE(plain != planned.end());
  CHECK_FALSE(plain->fits);
  CHECK(plain->why == "needs 6.71 GiB, 6.00 GiB are allowed");
  CHECK_FALSE(planned.back().fits);
}

TEST_CASE(
    "layouts are pipelines of all divisors of the ranks, and data parallelism with and without sharding") {
  const std::vector<PlannedLayout> planned = plan_layouts(kShares, kMachine, any_layout);
  CHECK(planned.size() ==
        1 + 3 * 3 + 3);  // plain, three stages in sets of 2, 4 and 8, and pipelines of 2, 4 and 8
  const std::string text = describe(planned, kMachine);
  CHECK(text.starts_with("2 hosts of 4 ranks; per rank"));
  CHECK(text.find("\ndata parallel 8, sharding stage 3 in sets of 4 ") != std::string::npos);
  CHECK(text.find("\ndata parallel 8, sharding stage 3  ") != std::string::npos);
  CHECK(std::count(text.begin(), text.end(), '\n') == 3 + 13);
}

TEST_CASE("samples per second are those of the step, also where the ranks do not divide them") {
  for (const std::int64_t samples : {8, 13, 256}) {
    CAPTURE(samples);
    for (const PlannedLayout& one : plan_layouts({.samples = samples, .ranks = 8}, kMachine, any_layout))
      CHECK(one.samples_per_second * one.time.all() == doctest::Approx(static_cast<double>(samples)));
  }
}

TEST_CASE("layouts that a training of the job cannot have are left out") {
  const std::vector<PlannedLayout> planned = plan_layouts(kShares, kMachine, [](const RankLayout& layout) {
    return layout.pipeline <= 2 && layout.sharding == 0 ? any_layout(layout) : std::nullopt;
  });
  REQUIRE(planned.size() == 2);
  for (const PlannedLayout& one : planned) {
    CHECK(one.layout.pipeline <= 2);
    CHECK(one.layout.sharding == 0);
  }
}

}  // namespace
}  // namespace fleetrun::runtime::layouts_test
