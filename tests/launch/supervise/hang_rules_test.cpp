#include "launch/supervise/hang_rules.h"

#include <doctest/doctest.h>

namespace fleetrun::launch::hang_rules_test {
namespace {

using namespace std::chrono_literals;

// Two ranks that are looked at once a second.
struct Scene {
  explicit Scene(HangOptions options) : rules(std::move(options), 2) {
    sample.ranks = {{.running = true}, {.running = true}};
    sample.rules_matched = {false};
    rules.look(sample, now);
  }

  // The first verdict within `time`, with `change` before each look; "" when there is none.
  template <typename Change>
  std::string pass(Clock::duration time, Change change) {
    for (const TimePoint end = now + time; now < end;) {
      now += 1s;
      change(sample);
      if (const auto why = rules.look(sample, now)) return *why;
    }
    return "";
  }
  std::string pass(Clock::duration time) {
    return pass(time, [](HangSample&) {});
  }

  HangRules rules;
  HangSample sample;
  TimePoint now{};
};

TEST_CASE("silence and idleness of all ranks is a hang when it lasts") {
  Scene scene({.silence = 60s});
  CHECK(scene.pass(59s).empty());
  CHECK(scene.pass(1s) == "no rank writes anything or works for 60 s");
}

TEST_CASE("silence here is no hang while a rank of another node does something, or nobody knows") {
  Scene scene({.silence = 10s});
  CHECK(scene.pass(100s, [](HangSample& sample) { sample.elsewhere.silent = 2s; }).empty());
  CHECK(scene.pass(1s, [](HangSample& sample) { sample.elsewhere.silent = 10s; }) ==
        "no rank writes anything or works for 10 s");
}

TEST_CASE("ranks of other nodes that have all ended are no sign of life") {
  Scene scene({.silence = 10s});
  CHECK_FALSE(scene.pass(10s, [](HangSample& sample) { sample.elsewhere = {}; }).empty());
}

TEST_CASE("a line that obeys a rule on another node is enough") {
  Scene scene({.rules = {{"step.*; 5s", 5s}}});
  CHECK(scene.pass(60s, [](HangSample& sample) { sample.elsewhere.unmatched = {1s}; }).empty());
  CHECK_FALSE(scene.pass(5s, [](HangSample& sample) { sample.elsewhere.unmatched = {5s}; }).empty());
}

TEST_CASE("no step is late while a rank of another node waits for its disk") {
  Scene scene({.steps = true, .step_bound = 10s});
  const auto train = [](HangSample& sample) { sample.ranks[0].training = true; };
  CHECK(scene
            .pass(60s,
                  [&](HangSample& sample) {
                    train(sample);
                    sample.elsewhere.excuses_steps = true;
                  })
            .empty());
  CHECK_FALSE(scene.pass(11s, [&](HangSample& sample) { sample.elsewhere.excuses_steps = false; }).empty());
}

TEST_CASE("the signs of life that a node tells are those of its liveliest rank") {
  Scene scene({.silence = 60s, .rules = {{"step", 60s}}});
  scene.pass(7s, [](HangSample& sample) { sample.ranks[0].log_bytes += 1; });
  scene.pass(5s);
  const SignsOfLife signs = scene.rules.signs();
  CHECK(signs.silent == Clock::duration(5s));
  CHECK(signs.unmatched == std::vector<Clock::duration>{12s});
  CHECK_FALSE(signs.excuses_steps);
  scene.pass(1s, [](HangSample& sample) { sample.ranks[0].running = sample.ranks[1].running = false; });
  CHECK(scene.rules.signs().silent == Clock::duration(0s));  // their end
  scene.pass(1s, [](HangSample& sample) { sample.ranks[0] = {.running = true, .debugged = true}; });
  CHECK(scene.rules.signs().excuses_steps);
}

TEST_CASE("two nodes together are as lively as the livelier one") {
  const SignsOfLife one = {.silent = 3s, .unmatched = {4s, 9s}},
                    other = {.silent = 5s, .unmatched = {6s, 2s}};
  CHECK(together(one, other).silent == Clock::duration(3s));
  CHECK(together(one, other).unmatched == std::vector<Clock::duration>{4s, 2s});
  CHECK(together({}, other).silent == Clock::duration(5s));
  CHECK(together({}, other).unmatched == other.unmatched);
  CHECK_FALSE(together({}, {}).silent);
  CHECK(together({}, {.excuses_steps = true}).excuses_steps);
}

TEST_CASE("one rank that writes is enough") {
  Scene scene({.silence = 10s});
  CHECK(scene.pass(100s, [](HangSample& sample) { sample.ranks[1].log_bytes += 5; }).empty());
}

TEST_CASE("one rank that works is enough, timers of a waiting program are not") {
  Scene scene({.silence = 10s});
  CHECK(scene.pass(100s, [](HangSample& sample) { sample.ranks[0].work.cpu_time += 200ms; }).empty());
  CHECK_FALSE(scene.pass(20s, [](HangSample& sample) { sample.ranks[0].work.cpu_time += 20ms; }).empty());
}

TEST_CASE(
    "own_file.py: one rank that reads or writes files is enough, monitors of a waiting program are not") {
  Scene scene({.silence = 10s});
  CHECK(scene.pass(100s, [](HangSample& sample) { sample.ranks[0].work.bytes_read += 1'000'000; }).empty());
  CHECK(
      scene.pass(100s, [](HangSample& sample) { sample.ranks[0].work.bytes_written += 1'000'000; }).empty());
  CHECK_FALSE(scene.pass(20s, [](HangSample& sample) { sample.ranks[0].work.bytes_read += 20'000; }).empty());
}

TEST_CASE("hunt 4: a rank that writes a few bytes to a file each second is enough") {
  Scene scene({.silence = 10s});
  CHECK(scene.pass(100s, [](HangSample& sample) { sample.ranks[1].work.bytes_written += 2; }).empty());
}

TEST_CASE("a child that ends takes its bytes with it, which is no sign of life") {
  Scene scene({.silence = 10s});
  scene.sample.ranks[0].work.bytes_read = scene.sample.ranks[0].work.bytes_written = 5'000'000;
  scene.pass(1s);
  scene.sample.ranks[0].work.bytes_read = scene.sample.ranks[0].work.bytes_written = 1000;
  CHECK_FALSE(scene.pass(20s).empty());
}

TEST_CASE("the work of a process that left its rank's process tree is enough") {
  Scene scene({.silence = 10s});
  CHECK(scene.pass(100s, [](HangSample& sample) { sample.detached.cpu_time += 500ms; }).empty());
  CHECK(scene.rules.signs().silent == 0s);
  CHECK(scene.pass(9s).empty());
  CHECK(scene.pass(1s) == "no rank writes anything or works for 10 s");
}

TEST_CASE("row 2: one rank that shows a sign of life is enough") {
  Scene scene({.silence = 10s});
  CHECK(scene.pass(100s, [](HangSample& sample) { ++sample.ranks[1].beat; }).empty());
}

TEST_CASE("a stopped rank is a hang though the others burn processor time") {
  Scene scene({.silence = 10s});
  const auto spin = [](HangSample& sample) {
    sample.ranks[0].work.cpu_time += 1s;
    sample.ranks[1].stopped = true;
  };
  CHECK(scene.pass(60s, spin) == "rank 1 is stopped for 10 s");
}

TEST_CASE("ranks that have ended are not waited for") {
  Scene scene({.silence = 10s});
  scene.sample.ranks[0].running = scene.sample.ranks[1].running = false;
  CHECK(scene.pass(100s).empty());
}

TEST_CASE("silence is counted from the end of a rank that worked until then") {
  Scene scene({.silence = 10s});
  CHECK(scene.pass(60s, [](HangSample& sample) { sample.ranks[0].log_bytes += 1; }).empty());
  scene.sample.ranks[0].running = false;
  CHECK(scene.pass(10s).empty());
  CHECK(scene.pass(1s) == "no rank writes anything or works for 10 s");
}

TEST_CASE("when we were stopped ourselves all clocks start anew") {
  Scene scene({.silence = 10s});
  CHECK(scene.pass(9s).empty());
  scene.now += 1h;
  CHECK(scene.pass(9s).empty());
  CHECK_FALSE(scene.pass(5s).empty());
}

TEST_CASE("forgiving starts all clocks anew") {
  Scene scene({.silence = 10s});
  CHECK(scene.pass(9s).empty());
  scene.rules.forgive();
  CHECK(scene.pass(10s).empty());
}

TEST_CASE("a log rule wants its line again and again, whatever else happens") {
  Scene scene({.rules = {{"loss within 5s", 5s}}});
  CHECK(scene.pass(60s, [](HangSample& sample) { sample.rules_matched = {true}; }).empty());
  const auto other = [](HangSample& sample) {
    sample.rules_matched = {false};
    sample.ranks[0].log_bytes += 100;
  };
  CHECK(scene.pass(4s, other).empty());
  CHECK(scene.pass(1s, other) == "no line of any rank obeys --log_rule 'loss within 5s'");
}

TEST_CASE("a rank that trains may take five times as long as its slowest steps, but 30 s at least") {
  Scene scene({.steps = true});
  for (RankSample& rank : scene.sample.ranks) rank.training = true;
  const auto step = [](HangSample& sample) {
    for (RankSample& rank : sample.ranks) {
      ++rank.step;
      ++rank.beat;
    }
  };
  SUBCASE("fast steps") {
    scene.pass(10s, step);
    CHECK(scene.pass(29s).empty());
    CHECK(scene.pass(1s) == "rank 0 has made no progress since step 10, 30 s ago");
  }
  SUBCASE("slow steps") {
    for (int i = 0; i < 5; ++i) {
      scene.pass(1s, step);
      scene.pass(19s);
    }
    scene.pass(1s, step);
    CHECK(scene.pass(99s).empty());
    CHECK_FALSE(scene.pass(1s).empty());
  }
  SUBCASE("one rank only") {
    scene.pass(10s, step);
    const auto why = scene.pass(100s, [](HangSample& sample) {
      ++sample.ranks[0].step;
      ++sample.ranks[0].beat;
    });
    CHECK(why == "rank 1 has made no progress since step 10, 30 s ago");
  }
  SUBCASE("evaluation beats without steps") {
    scene.pass(10s, step);
    CHECK(scene
              .pass(200s,
                    [](HangSample& sample) {
                      for (RankSample& rank : sample.ranks) ++rank.beat;
                    })
              .empty());
  }
}

TEST_CASE("row 2: while a rank waits for a disk, for minutes, it and the others are not late") {
  Scene scene({.steps = true});
  for (RankSample& rank : scene.sample.ranks) rank = {.running = true, .training = true, .step = 10};
  scene.pass(1s);
  const auto step = [](HangSample& sample) {
    for (RankSample& rank : sample.ranks) ++rank.step, ++rank.beat;
  };
  scene.pass(10s, step);
  scene.sample.ranks[1].on_disk = true;
  SUBCASE("that it comes back from") {
    CHECK(scene.pass(299s).empty());
    scene.sample.ranks[1].on_disk = false;
    CHECK(scene.pass(29s).empty());
    CHECK(scene.pass(5s, step).empty());
  }
  SUBCASE("that never answers") {
    CHECK(scene.pass(300s).empty());
    CHECK(scene.pass(1s) == "rank 1 has made no progress since step 20, 300 s ago");
  }
  SUBCASE("that lets another rank hang") {
    CHECK(scene.pass(100s).empty());
    scene.sample.ranks[1].on_disk = false;
    CHECK(scene.pass(29s, [](HangSample& sample) { ++sample.ranks[1].beat; }).empty());
    CHECK(scene.pass(2s, [](HangSample& sample) { ++sample.ranks[1].beat; }) ==
          "rank 0 has made no progress since step 20, 30 s ago");
  }
}

TEST_CASE("row 2: a bound for steps that was given is that of waits for a disk, too") {
  Scene scene({.steps = true, .step_bound = 3s});
  for (RankSample& rank : scene.sample.ranks) rank.training = true;
  scene.sample.ranks[1].on_disk = true;
  CHECK(scene.pass(3s).empty());
  CHECK(scene.pass(1s) == "rank 1 has made no progress since step 0, 3 s ago");
}

TEST_CASE("signs of life: while a debugger holds a rank nothing is judged, and all clocks start anew then") {
  Scene scene({.silence = 5s, .steps = true, .step_bound = 5s, .rules = {{"loss within 5s", 5s}}});
  for (RankSample& rank : scene.sample.ranks) rank.training = true;
  scene.sample.ranks[1].debugged = true;
  CHECK(scene.pass(1h).empty());
  scene.sample.ranks[1].debugged = false;
  CHECK(scene.pass(4s).empty());
  CHECK_FALSE(scene.pass(2s).empty());
}

TEST_CASE("the first step may take minutes, and what comes before training is not judged by steps") {
  Scene scene({.steps = true});
  CHECK(scene.pass(1h).empty());
  for (RankSample& rank : scene.sample.ranks) rank.training = true;
  CHECK(scene.pass(5min).empty());
  CHECK_FALSE(scene.pass(2s).empty());
}

TEST_CASE("a bound for steps that was given is used as it is") {
  Scene scene({.steps = true, .step_bound = 3s});
  for (RankSample& rank : scene.sample.ranks) rank.training = true;
  CHECK(scene.pass(3s).empty());
  CHECK_FALSE(scene.pass(1s).empty());
}

TEST_CASE("without a rule nothing is a hang") {
  CHECK_FALSE(HangOptions{}.any());
  Scene scene({});
  CHECK(scene.pass(1h).empty());
}

}  // namespace
}  // namespace fleetrun::launch::hang_rules_test
