#include "job/spec/schedule.h"

#include <doctest/doctest.h>

namespace fleetrun::job::schedule_test {
namespace {

constexpr int kStepsPerEpoch = 10;
constexpr int kSteps = 100;

double rate(const ScheduleSpec& schedule, int step) {
  return learning_rate_at(schedule, {step, step}, kStepsPerEpoch, kSteps);
}

TEST_CASE("a constant rate stays") {
  const ScheduleSpec schedule{.base = 0.25};
  CHECK(rate(schedule, 0) == 0.25);
  CHECK(rate(schedule, 99) == 0.25);
}

TEST_CASE("the warm-up grows evenly and ends with the whole rate") {
  const ScheduleSpec schedule{.base = 0.8, .warmup_steps = 4};
  CHECK(rate(schedule, 0) == doctest::Approx(0.2));
  CHECK(rate(schedule, 1) == doctest::Approx(0.4));
  CHECK(rate(schedule, 3) == doctest::Approx(0.8));
  CHECK(rate(schedule, 4) == doctest::Approx(0.8));
}

TEST_CASE("piecewise changes at its boundaries, in steps") {
  const ScheduleSpec schedule{
      .name = ScheduleName::piecewise, .boundaries = {3, 5}, .values = {0.1, 0.01, 0.001}};
  CHECK(rate(schedule, 0) == 0.1);
  CHECK(rate(schedule, 2) == 0.1);
  CHECK(rate(schedule, 3) == 0.01);
  CHECK(rate(schedule, 4) == 0.01);
  CHECK(rate(schedule, 5) == 0.001);
  CHECK(rate(schedule, 99) == 0.001);
}

TEST_CASE("piecewise changes at the first step of an epoch when its unit is the epoch") {
  const ScheduleSpec schedule{
      .name = ScheduleName::piecewise, .unit = ScheduleUnit::epoch, .boundaries = {3}, .values = {0.1, 0.01}};
  CHECK(rate(schedule, 29) == 0.1);
  CHECK(rate(schedule, 30) == 0.01);
}

TEST_CASE("cosine goes from base to end along half a cosine") {
  const ScheduleSpec schedule{.name = ScheduleName::cosine, .base = 1.0, .end = 0.2};
  CHECK(rate(schedule, 0) == doctest::Approx(1.0));
  CHECK(rate(schedule, 25) == doctest::Approx(0.2 + 0.8 * (1 + 0.70710678) / 2));
  CHECK(rate(schedule, 50) == doctest::Approx(0.6));
  CHECK(rate(schedule, 100) == doctest::Approx(0.2));
  CHECK(rate(schedule, 1000) == doctest::Approx(0.2));  // never past the end
}

TEST_CASE("polynomial goes from base to end along a line") {
  const ScheduleSpec schedule{.name = ScheduleName::polynomial, .base = 1.0, .end = 0.5};
  CHECK(rate(schedule, 0) == doctest::Approx(1.0));
  CHECK(rate(schedule, 50) == doctest::Approx(0.75));
  CHECK(rate(schedule, 100) == doctest::Approx(0.5));
}

TEST_CASE("after a warm-up the way down begins from the whole rate") {
  const ScheduleSpec schedule{.name = ScheduleName::cosine, .base = 1.0, .warmup_steps = 20};
  CHECK(rate(schedule, 9) == doctest::Approx(0.5));
  CHECK(rate(schedule, 20) == doctest::Approx(1.0));
  CHECK(rate(schedule, 60) == doctest::Approx(0.5));
}

TEST_CASE("a training that ends within the warm-up has finite rates") {
  const ScheduleSpec schedule{.name = ScheduleName::cosine, .base = 1.0, .warmup_steps = 200};
  CHECK(rate(schedule, 99) == doctest::Approx(0.5));
  CHECK(learning_rate_at(schedule, {300, 300}, kStepsPerEpoch, kSteps) == doctest::Approx(1.0));
}

}  // namespace
}  // namespace fleetrun::job::schedule_test
