#include <doctest/doctest.h>

#include "runtime/graph/builder.h"
#include "support/run_program.h"

namespace fleetrun::runtime::adam_test {
namespace {

using test::Floats;

constexpr double kBeta1 = 0.9;
constexpr float kRate = 0.0625F;

// How far a parameter goes in so many steps of a gradient that stays. The corrected moments are that gradient and its square, so each
// step is as long as the rate.
double walked(double beta2, int steps) {
  Program program;
  Builder builder(program, all_ops());
  const ValueId w = builder.parameter("w", {1}, {});
  const auto state = [&](const char* name) { return builder.state(name, {1}, {}, w); };
  builder.add({.type = "adam",
               .inputs = {{"param", w},
                          {"grad", builder.feed("g", {1})},
                          {"moment1", state("m1")},
                          {"moment2", state("m2")},
                          {"beta1_pow", state("p1")},
                          {"beta2_pow", state("p2")},
                          {"learning_rate", builder.feed("rate", {1})}},
               .attributes = {{"beta1", kBeta1}, {"beta2", beta2}, {"epsilon", 1e-30}, {"weight_decay", 0.0}},
               .role = Role::optimize});
  const auto device = make_cpu_device();
  test::ProgramRun run(program, all_ops(), *device);
  const auto set = [&](const char* name, float value) { run.set(run.program().find(name), Floats{value}); };
  set("w", 0);
  set("g", 1);
  set("rate", kRate);
  set("m1", 0);
  set("m2", 0);
  set("p1", static_cast<float>(kBeta1));
  set("p2", static_cast<float>(beta2));
  for (int step = 0; step < steps; ++step) run.run();
  return -run.get(run.program().find("w")).front();
}

TEST_CASE("row 13: Adam's steps are right to a thousandth for every beta2 that a job may have") {
  for (const double beta2 : {0.9, 0.999, 0.9999, 0.99999})
    for (const int steps : {1, 10, 1000}) {
      CAPTURE(beta2);
      CAPTURE(steps);
      CHECK(walked(beta2, steps) == doctest::Approx(steps * kRate).epsilon(0.001));
    }
}

}  // namespace
}  // namespace fleetrun::runtime::adam_test
