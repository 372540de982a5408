#include "runtime/plan/layouts.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>

namespace fleetrun::runtime::layouts_test {
namespace {

constexpr double kGiB = 1 << 30;

// Eight equal layers of 1 GFLOP, with 100 MB of parameters each.
StepCosts eight_layers() {
  StepCosts costs = {.parameter_bytes = 8e8,
                     .gradient_bytes = 8e8,
                     .optimizer_bytes = 16e8,
                     .buffer_bytes = 8e6,
                     .activation_bytes = 4e9,
                     .largest_parameter_bytes = 1e8,
                     .parameter_elements = std::vector<std::int64_t>(8, 25'000'000)};
  for (int i = 0; i < 8; ++i)
    costs.forward.push_back(
        {.flops = 1e9, .moved_bytes = 1e6, .parameter_bytes = 1e8, .crossing_bytes = i < 7 ? 1e6 : 0});
  return costs;
}

const PlanRequest kMachine = {.hosts = 2,
                              .gpus = 4,
                              .memory_bytes = 32e9,
                              .tflops = 1,
                              .memory_gb_s = 1000,
                              .link_gb_s = 100,
                              .network_gb_s = 10,
                              .latency_us = 0};

constexpr job::StepShares kShares = {.samples = 256, .ranks = 8};

bool any_layout(const RankLayout&) { return true; }

TEST_CASE(
    "sharding divides optimizer states, then gradients, then parameters among the data-parallel ranks") {
  const StepCosts costs = eight_layers();
  const RankMemory plain = memory_of({.data_parallel = 8}, costs, kMachine);
  CHECK(plain.parameters == 8e8);
  CHECK(plain.optimizer == 16e8);
  CHECK(plain.all() == doctest::Approx(8e8 + 8e8 + 16e8 + 4e9 + 8e6));
  const RankMemory first = memory_of({.data_parallel = 8, .sharding = 1, .set = 8}, costs, kMachine);
  CHECK(first.optimizer == 2e8);
  CHECK(first.gradients == 8e8);
  const RankMemory second = memory_of({.data_parallel = 8, .sharding = 2, .set = 8}, costs, kMachine);
  CHECK(second.gradients == 1e8);
  CHECK(second.parameters == 8e8);
  const RankMemory third = memory_of({.data_parallel = 8, .sharding = 3, .set = 8}, costs, kMachine);
  CHECK(third.parameters == 1e8);
  CHECK(third.buffers == 8e6 + 2e8);  // two gathered layers
  const RankMemory in_sets = memory_of({.data_parallel = 8, .sharding = 3, .set = 4}, costs, kMachine);
  CHECK(in_sets.parameters == 2e8);
  CHECK(in_sets.optimizer == 4e8);
}

TEST_CASE("a rank has the batches in memory that it reads ahead") {
  StepCosts costs = eight_layers();
  costs.batch_bytes = 1e9;
  costs.batches_in_memory = 5;
  CHECK(memory_of({.data_parallel = 8}, costs, kMachine).buffers == 8e6 + 5e9);
}

TEST_CASE("the owner of a parameter that has most elements needs most of what sharding divides") {
  StepCosts costs = eight_layers();
  costs.parameter_elements = {140, 20, 20, 20};  // of 200
  const RankMemory memory = memory_of({.data_parallel = 8, .sharding = 3, .set = 4}, costs, kMachine);
  CHECK(memory.parameters == doctest::Approx(0.7 * costs.parameter_bytes));
  CHECK(memory.gradients == doctest::Approx(0.7 * costs.gradient_bytes));
  CHECK(memory.optimizer == doctest::Approx(0.7 * costs.optimizer_bytes));
}

TEST_CASE("ranks that communicate in each k-th step wait for a k-th of the sums") {
  StepCosts costs = eight_layers();
  const double each_step = time_of({.data_parallel = 8}, costs, kMachine).sums;
  costs.steps_per_sum = 4;
  CHECK(time_of({.data_parallel = 8}, costs, kMachine).sums == each_step / 4);
  // Stage 3 gathers the parameters twice in each step: two thirds of its traffic.
  const RankLayout third = {.data_parallel = 8, .sharding = 3, .set = 8};
  const double gathered = time_of(third, eight_layers(), kMachine).sums,
               merged = time_of(third, costs, kMachine).sums;
  CHECK(merged < gathered * 0.8);
  CHECK(merged > gathered * 0.6);
}

TEST_CASE("sets of sharding that are hosts send only their own part of the gradients between the hosts") {
  const double in_set = 2 * 3.0 / 4 * 8e8 / 100e9, between = 2 * 1.0 / 2 * (8e8 / 4) * 4 / 10e9;
  const RankLayout layout = {.data_parallel = 8, .sharding = 1, .set = 4};
  CHECK(time_of(layout, eight_layers(), kMachine).sums ==
        doctest::Approx(in_set / 2 + between - 0.016 + in_set / 2));
  const RankLayout pairs = {.data_parallel = 8, .sharding = 3, .set = 2};
  const double in_pair = 2 * 1.0 / 2 * 8e8 / 100e9,
               of_place = 2 * 1.0 / 2 * 4e8 / 100e9 + 2 * 1.0 / 2 * 4e8 * 2 / 10e9;
  CHECK(time_of(pairs, eight_layers(), kMachine).sums == doctest::Approx(1.5 * in_pair + of_place - 0.024));
}

TEST_CASE(
    "a pipeline divides parameters by stages, and keeps the activations of as many micro batches as stages") {
  const RankMemory memory =
      memory_of({.data_parallel = 2, .pipeline = 4, .micro_batches = 16}, eight_layers(), kMachine);
  CHECK(memory.parameters == doctest::Approx(2e8));
  CHECK(memory.optimizer == doctest::Approx(4e8));
  CHECK(memory.activations == doctest::Approx(4e9 * 4 / 16));
}

TEST_CASE("computation is three times the forward part, or as measured") {
  CHECK(time_of({}, eight_layers(), kMachine).compute == doctest::Approx(3 * 8e-3));
  PlanRequest measured = kMachine;
  measured.step_ms = 40;
  CHECK(time_of({}, eight_layers(), measured).compute == doctest::Approx(0.04));
  CHECK(time_of({}, eight_layers(), kMachine).all() == doctest::Approx(0.024));  // alone: nothing to wait for
}

TEST_CASE("a pipeline waits for its first and last micro batch") {
  const StepTime time =
      time_of({.data_parallel = 2, .pipeline = 4, .micro_batches = 16}, eight_layers(), kMachine);
  CHECK(time.bubble == doctest::Approx(0.024 * 3 / 16));
  CHECK(time.pipeline == doctest::Approx(2 * 4 * 1e6 / 100e9));
}

TEST_CASE("gradients are summed inside the hosts, then between them, behind the backward part") {
  const double all_reduce = 2 * 3.0 / 4 * 8e8 / 100e9 + 2 * 1.0 / 2 * 8e8 / 10e9;  // 92 ms
  const StepCosts costs = eight_layers();
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
  const std::vector<PlannedLayout> planned = plan_layouts(eight_layers(), kShares, fast, any_layout);
  CHECK(planned.front().layout == RankLayout{.data_parallel = 8});
  CHECK(planned.front().why.empty());
  CHECK(planned.front().fits);
  for (std::size_t i = 1; i < planned.size(); ++i) CHECK_FALSE(planned[i].why.empty());
}

TEST_CASE("what does not fit comes last and says what it needs") {
  PlanRequest small = kMachine;
  small.memory_bytes = 6 * kGiB;
  const std::vector<PlannedLayout> planned = plan_layouts(eight_layers(), kShares, small, any_layout);
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
  const std::vector<PlannedLayout> planned = plan_layouts(eight_layers(), kShares, kMachine, any_layout);
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
    for (const PlannedLayout& one :
         plan_layouts(eight_layers(), {.samples = samples, .ranks = 8}, kMachine, any_layout))
      CHECK(one.samples_per_second * one.time.all() == doctest::Approx(static_cast<double>(samples)));
  }
}

TEST_CASE("layouts that a training of the job cannot have are left out") {
  const std::vector<PlannedLayout> planned =
      plan_layouts(eight_layers(), kShares, kMachine,
                   [](const RankLayout& layout) { return layout.pipeline <= 2 && layout.sharding == 0; });
  REQUIRE(planned.size() == 2);
  for (const PlannedLayout& one : planned) {
    CHECK(one.layout.pipeline <= 2);
    CHECK(one.layout.sharding == 0);
  }
}

}  // namespace
}  // namespace fleetrun::runtime::layouts_test
