#include "runtime/optim/loss_scaling.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "runtime/graph/program_text.h"
#include "support/built_model.h"
#include "support/run_op.h"
#include "support/test_device.h"

namespace fleetrun::runtime::loss_scaling_test {
namespace {

using test::Floats;

struct State {
  float scale = 1024;
  float good = 0, bad = 0;
  bool operator==(const State&) const = default;
};

struct Rules {
  std::int64_t incr_every = 3, decr_every = 2;
  double incr_ratio = 2.0, decr_ratio = 0.5;
};

// After steps of which 'x' overflowed and '.' did not.
State after(const std::string& steps, State state, const Rules& rules = {}) {
  const auto device = test::make_test_device();
  for (const char step : steps) {
    const Shape one = {1};
    test::OpRun run("update_loss_scaling",
                    {{"found", {one, Floats{step == 'x' ? 1.0F : 0.0F}}},
                     {"scale", {one, Floats{state.scale}}},
                     {"good", {one, Floats{state.good}}},
                     {"bad", {one, Floats{state.bad}}}},
                    {{"incr_every_n_steps", rules.incr_every},
                     {"decr_every_n_nan_or_inf", rules.decr_every},
                     {"incr_ratio", rules.incr_ratio},
                     {"decr_ratio", rules.decr_ratio}},
                    *device);
    state = {run.output("scale").front(), run.output("good").front(), run.output("bad").front()};
  }
  return state;
}

TEST_CASE("the loss scale counts steps as PaddlePaddle does") {
  struct Case {
    const char* steps;
    State start, end;
    Rules rules;
  };
  constexpr float kMost = std::numeric_limits<float>::max();
  const std::vector<Case> cases = {
      {".", {1024, 0, 0}, {1024, 1, 0}, {}},
      {"...", {1024, 0, 0}, {2048, 0, 0}, {}},  // grows after as many good steps, and counts anew
      {"......", {1024, 0, 0}, {4096, 0, 0}, {}},
      {"x", {1024, 2, 0}, {1024, 0, 1}, {}},  // one overflow takes the good steps back
      {"xx", {1024, 0, 0}, {512, 0, 0}, {}},  // two in a row: it shrinks
      {"xxxx", {1024, 0, 0}, {256, 0, 0}, {}},
      {"x.x", {1024, 0, 0}, {1024, 0, 1}, {}},  // not in a row
      {"x.x.", {1024, 0, 0}, {1024, 1, 0}, {}},
      {"..x...", {1024, 0, 0}, {2048, 0, 0}, {}},
      {"xx", {1.5F, 0, 0}, {1, 0, 0}, {}},  // never below 1
      {"xx", {1, 0, 0}, {1, 0, 0}, {}},
      {"xx", {0.25F, 0, 0}, {1, 0, 0}, {}},
      {"...", {kMost, 0, 0}, {kMost, 0, 0}, {}},  // never infinite
      {"...", {kMost / 2, 0, 0}, {kMost, 0, 0}, {}},
      {"x", {1000, 0, 0}, {800, 0, 0}, {.decr_every = 1, .decr_ratio = 0.8}},
      {".", {1000, 0, 0}, {1500, 0, 0}, {.incr_every = 1, .incr_ratio = 1.5}},
      {"..", {1024, 3, 0}, {1024, 5, 0}, {}},  // equality: who is past the number never gets there
  };
  for (const Case& one : cases) {
    CAPTURE(one.steps);
    CAPTURE(one.start.scale);
    const State found = after(one.steps, one.start, one.rules);
    CHECK(found.scale == one.end.scale);
    CHECK(found.good == one.end.good);
    CHECK(found.bad == one.end.bad);
  }
}

// Gradients of one element more than a few registers, in one piece and in several.
struct Checked {
  float found;
  Floats out;
};

Checked check_gradient(const Floats& gradient, float scale, float found = 0) {
  const auto device = test::make_test_device();
  test::OpRun run("check_finite_and_unscale",
                  {{"x", {{static_cast<std::int64_t>(gradient.size())}, gradient}},
                   {"scale", {{1}, Floats{scale}}},
                   {"found", {{1}, Floats{found}}}},
                  {}, *device);
  return {run.output("found").front(), run.output("out")};
}

TEST_CASE("gradients lose the scale, and what is not a number is found wherever it is") {
  for (const std::size_t size : {1UL, 15UL, 16UL, 37UL, 40000UL}) {
    CAPTURE(size);
    Floats gradient(size);
    for (std::size_t i = 0; i < size; ++i) gradient[i] = static_cast<float>(i) - 7.5F;
    const Checked good = check_gradient(gradient, 512);
    CHECK(good.found == 0);
    CHECK(good.out[size / 2] == gradient[size / 2] / 512);
    CHECK(check_gradient(gradient, 512, 1).found == 1);  // what another gradient said stays
    for (const std::size_t place : {std::size_t{0}, size / 2, size - 1})
      for (const float odd : {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
                              std::numeric_limits<float>::quiet_NaN()}) {
        Floats bad = gradient;
        bad[place] = odd;
        CHECK(check_gradient(bad, 512).found == 1);
      }
  }
}

TEST_CASE("gradients are set to 0 after an overflow, and only then") {
  const auto device = test::make_test_device();
  const Floats gradient = {1, -2, std::numeric_limits<float>::infinity(), 4};
  for (const float found : {0.0F, 1.0F, 2.0F}) {
    test::OpRun run("zero_on_overflow", {{"grad", {{4}, gradient}}, {"found", {{1}, Floats{found}}}}, {},
                    *device);
    CHECK(run.output("grad") == (found > 0 ? Floats(4, 0.0F) : gradient));
  }
}

test::BuiltModel lenet(const job::AmpSpec& amp, int ranks) {
  job::StrategySpec strategy;
  strategy.amp = true;
  strategy.amp_configs = amp;
  return test::build_model(job::ModelName::lenet, 10, ranks, strategy);
}

TEST_CASE("gradients are checked at once on one rank, one by one where they come from several") {
  const test::BuiltModel alone = lenet({}, 1), two = lenet({}, 2);
  CHECK(alone.count("check_finite_and_unscale") == 1);
  CHECK(two.count("check_finite_and_unscale") == 8);
  for (const test::BuiltModel* built : {&alone, &two}) {
    CHECK(built->count("update_loss_scaling") == 1);
    CHECK(built->count("zero_on_overflow") == 1);
    CHECK(built->count("momentum") == 8);
  }
}

TEST_CASE("the states that count steps are known with the counts at which they move the scale") {
  const test::BuiltModel built = lenet({.incr_every_n_steps = 5, .decr_every_n_nan_or_inf = 3}, 1);
  const auto counts = loss_scale_counts(built.program);
  REQUIRE(counts.size() == 2);
  CHECK(built.program.value(counts[0].steps).name == "loss_scaling.good_steps");
  CHECK(counts[0].moves_at == 5);
  CHECK(built.program.value(counts[1].steps).name == "loss_scaling.bad_steps");
  CHECK(counts[1].moves_at == 3);
}

TEST_CASE("a static scale is taken out again and never moves") {
  const test::BuiltModel built = lenet({.init_loss_scaling = 128, .use_dynamic_loss_scaling = false}, 1);
  CHECK(built.count("scale_loss") == 2);
  CHECK(built.count("check_finite_and_unscale") == 1);
  CHECK(built.count("update_loss_scaling") == 0);
  CHECK(built.count("zero_on_overflow") == 0);
  CHECK(built.program.of_kind(ValueKind::state).size() == 8);  // velocities
  CHECK(loss_scale_counts(built.program).empty());
  CHECK(built.messages.front().ends_with("the loss scale is 128"));
}

TEST_CASE(
    "a static scale of 1 is not a scaling: gradients are cast after their all-reduce, and that is all") {
  const test::BuiltModel built = lenet({.init_loss_scaling = 1, .use_dynamic_loss_scaling = false}, 2);
  for (const char* op : {"scale_loss", "check_finite_and_unscale", "update_loss_scaling", "zero_on_overflow"})
    CHECK(built.count(op) == 0);
  int casts = 0;
  bool summed = false;
  for (const Op& op : built.program.ops) {
    summed = summed || op.type == "all_reduce";
    if (op.type != "cast" || op.role != Role::optimize) continue;
    CHECK(summed);
    ++casts;
  }
  CHECK(casts == 8);
  CHECK(built.messages.front().ends_with("the loss is not scaled"));
}

}  // namespace
}  // namespace fleetrun::runtime::loss_scaling_test
