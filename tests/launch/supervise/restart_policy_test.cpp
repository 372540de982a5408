#include "launch/supervise/restart_policy.h"

#include <doctest/doctest.h>

namespace fleetrun::launch::restart_policy_test {
namespace {

using namespace std::chrono_literals;

constexpr RestartPolicy kPolicy = {.most = 10, .first_delay = 1s, .longest_delay = 60s, .settled = 60s};

TEST_CASE("without restarts the first failure is the end, and no crash loop") {
  RestartCounter counter({});
  CHECK_FALSE(counter.after(1, 1s));
  CHECK_FALSE(counter.crash_loop());
}

TEST_CASE("the pause doubles while attempts fail at once, and the third such attempt is the last") {
  RestartCounter counter(kPolicy);
  CHECK(counter.after(1, 1s) == Clock::duration(1s));
  CHECK(counter.after(1, 1s) == Clock::duration(2s));
  CHECK_FALSE(counter.after(1, 1s));
  CHECK(counter.crash_loop());
}

TEST_CASE("an attempt that lived long has made progress: the pause is short again") {
  RestartCounter counter(kPolicy);
  counter.after(1, 1s);
  counter.after(1, 1s);
  CHECK(counter.after(1, 1h) == Clock::duration(1s));
  CHECK(counter.after(1, 1s) == Clock::duration(1s));
  CHECK(counter.after(1, 1s) == Clock::duration(2s));
}

TEST_CASE("restarts that are used up after progress are not a crash loop") {
  RestartCounter counter({.most = 1});
  CHECK(counter.after(1, 1h));
  CHECK_FALSE(counter.after(1, 1h));
  CHECK_FALSE(counter.crash_loop());
}

TEST_CASE("the pause has a longest length") {
  RestartCounter counter({.most = 10, .first_delay = 50s, .longest_delay = 60s});
  counter.after(1, 1s);
  CHECK(counter.after(1, 1s) == Clock::duration(60s));
}

TEST_CASE("what cannot get better is not tried again") {
  for (const int code : {2, 65, 66, 76, 77, 78, 80, 93, 126, 127}) {
    CHECK_FALSE(worth_restarting(code));
    RestartCounter counter(kPolicy);
    CHECK_FALSE(counter.after(code, 1s));
    CHECK_FALSE(counter.crash_loop());
  }
  for (const int code : {1, 3, 74, 75, 81, 101, 134, 137, 139}) CHECK(worth_restarting(code));
}

}  // namespace
}  // namespace fleetrun::launch::restart_policy_test
