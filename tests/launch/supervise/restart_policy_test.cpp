#include "launch/supervise/restart_policy.h"

#include <doctest/doctest.h>

namespace fleetrun::launch::restart_policy_test {
namespace {

using namespace std::chrono_literals;

const RestartPolicy kPolicy = {.most = 10, .first_delay = 1s, .longest_delay = 60s, .settled = 60s};

TEST_CASE("without restarts the first failure is the end, and no crash loop") {
  RestartCounter counter({});
  CHECK_FALSE(counter.after(1, 1s, TimePoint{}));
  CHECK_FALSE(counter.crash_loop());
}

TEST_CASE("the pause doubles while attempts fail at once, and the third such attempt is the last") {
  RestartCounter counter(kPolicy);
  CHECK(counter.after(1, 1s, TimePoint{}) == Clock::duration(1s));
  CHECK(counter.after(1, 1s, TimePoint{}) == Clock::duration(2s));
  CHECK_FALSE(counter.after(1, 1s, TimePoint{}));
  CHECK(counter.crash_loop());
}

TEST_CASE("an attempt that lived long has made progress: the pause is short again") {
  RestartCounter counter(kPolicy);
  counter.after(1, 1s, TimePoint{});
  counter.after(1, 1s, TimePoint{});
  CHECK(counter.after(1, 1h, TimePoint{}) == Clock::duration(1s));
  CHECK(counter.after(1, 1s, TimePoint{}) == Clock::duration(1s));
  CHECK(counter.after(1, 1s, TimePoint{}) == Clock::duration(2s));
}

TEST_CASE("restarts that are used up after progress are not a crash loop") {
  RestartCounter counter({.most = 1});
  CHECK(counter.after(1, 1h, TimePoint{}));
  CHECK_FALSE(counter.after(1, 1h, TimePoint{}));
  CHECK_FALSE(counter.crash_loop());
}

TEST_CASE("the pause has a longest length") {
  RestartCounter counter({.most = 10, .first_delay = 50s, .longest_delay = 60s});
  counter.after(1, 1s, TimePoint{});
  CHECK(counter.after(1, 1s, TimePoint{}) == Clock::duration(60s));
}

TEST_CASE("what cannot get better is not tried again") {
  for (const int code : {2, 65, 66, 76, 77, 78, 80, 93, 126, 127}) {
    CHECK_FALSE(worth_restarting(kPolicy, code));
    RestartCounter counter(kPolicy);
    CHECK_FALSE(counter.after(code, 1s, TimePoint{}));
    CHECK_FALSE(counter.crash_loop());
  }
  for (const int code : {1, 3, 74, 75, 81, 101, 134, 137, 139}) CHECK(worth_restarting(kPolicy, code));
}

TEST_CASE("--no_restart_on adds codes after which nothing starts again, and the others do") {
  const RestartPolicy policy = {.most = 10, .never_after = {3, 137}};
  for (const int code : {3, 137, 78}) {
    RestartCounter counter(policy);
    CHECK_FALSE(counter.after(code, 1h, TimePoint{}));
    CHECK_FALSE(counter.crash_loop());
  }
  CHECK(RestartCounter(policy).after(4, 1s, TimePoint{}));
}

TEST_CASE("three attempts in a row without a new step are the last, however long they ran") {
  RestartCounter counter(kPolicy);
  CHECK(counter.after(1, 1s, TimePoint{}, 50) == Clock::duration(1s));
  CHECK(counter.after(1, 1h, TimePoint{}, 50) == Clock::duration(1s));
  CHECK(counter.after(1, 1h, TimePoint{}, 40) == Clock::duration(2s));
  CHECK_FALSE(counter.after(1, 1h, TimePoint{}, 50));
  CHECK(counter.crash_loop());
}

TEST_CASE("short attempts that each do new steps may start again as often as --max_restart allows") {
  RestartCounter counter(kPolicy);
  for (int step = 1; step <= 10; ++step)
    CHECK(counter.after(1, 1s, TimePoint{}, step) == Clock::duration(1s));
  CHECK_FALSE(counter.after(1, 1s, TimePoint{}, 11));
  CHECK_FALSE(counter.crash_loop());
}

TEST_CASE("attempts that never reach their first step are a crash loop") {
  RestartCounter counter(kPolicy);
  CHECK(counter.after(1, 1h, TimePoint{}, 0));
  CHECK(counter.after(1, 1h, TimePoint{}, 0));
  CHECK_FALSE(counter.after(1, 1h, TimePoint{}, 0));
  CHECK(counter.crash_loop());
}

TEST_CASE("with other nodes a lower step is progress, since the steps of an epoch have changed") {
  RestartCounter counter(kPolicy);
  counter.after(1, 1s, TimePoint{}, 100);
  CHECK(counter.after_loss(TimePoint{}));
  CHECK(counter.after(1, 1s, TimePoint{}, 80) == Clock::duration(1s));
  counter.forget_steps();
  CHECK(counter.after(1, 1s, TimePoint{}, 60) == Clock::duration(1s));
  CHECK(counter.after(1, 1s, TimePoint{}, 60) == Clock::duration(1s));
  CHECK(counter.after(1, 1s, TimePoint{}, 60) == Clock::duration(2s));
}

TEST_CASE("with a window only the restarts inside it count") {
  RestartCounter counter({.most = 2, .window = 1h});
  const TimePoint start;
  CHECK(counter.after(1, 2min, start));
  CHECK(counter.after(1, 2min, start + 40min));
  CHECK_FALSE(counter.after(1, 2min, start + 59min));  // two in the last hour
  CHECK_FALSE(counter.crash_loop());                   // each attempt made progress
  CHECK(counter.after(1, 2min, start + 60min));
  CHECK_FALSE(counter.after_loss(start + 99min));
  CHECK(counter.after_loss(start + 100min));
  CHECK(counter.restarts() == 4);
}

TEST_CASE("with a window, restarts that another node counted are as old as it says") {
  const TimePoint start;
  RestartCounter counter({.most = 2, .window = 1h}, {5, {start - 40min}});
  CHECK(counter.restarts() == 5);
  CHECK(counter.ages_inside_window(start) == std::vector<Clock::duration>{40min});
  CHECK(counter.after_loss(start));
  CHECK(counter.has_spent_all(start + 19min));
  CHECK_FALSE(counter.after_loss(start + 19min));
  CHECK_FALSE(counter.has_spent_all(start + 20min));
  CHECK(counter.after_loss(start + 20min));
  CHECK(counter.ages_inside_window(start + 20min) == std::vector<Clock::duration>{20min, 0min});
  CHECK(counter.restarts() == 7);
}

TEST_CASE("without a window all restarts that another node counted count") {
  RestartCounter counter({.most = 2}, {1});
  CHECK(counter.after_loss(TimePoint{}));
  CHECK(counter.has_spent_all(TimePoint{} + 1000h));
  CHECK(counter.ages_inside_window(TimePoint{}).empty());
  CHECK(RestartCounter({.most = 2}, {2}).has_spent_all(TimePoint{}));
}

TEST_CASE("three attempts without progress end a run whatever its window is") {
  RestartCounter counter({.most = 10, .window = 1s});
  const TimePoint start;
  CHECK(counter.after(1, 1s, start));
  CHECK(counter.after(1, 1s, start + 10s));
  CHECK_FALSE(counter.after(1, 1s, start + 20s));
  CHECK(counter.crash_loop());
}

}  // namespace
}  // namespace fleetrun::launch::restart_policy_test
