#include "base/run/timeline.h"

#include <doctest/doctest.h>

#include <thread>

namespace fleetrun::timeline_test {
namespace {

TEST_CASE("spans are kept while the timeline is open, with the step in which they ended") {
  Timeline timeline;
  const auto label = timeline.add({Lane::compute, "relu", "forward", "y"});
  timeline.note(label, 1, 2);
  timeline.open(10);
  timeline.begin_step(7);
  timeline.note(label, 3, 4);
  timeline.close();
  timeline.note(label, 5, 6);
  REQUIRE(timeline.spans().size() == 1);
  CHECK(timeline.spans()[0].start_ns == 3);
  CHECK(timeline.spans()[0].step == 7);
  CHECK(timeline.labels().at(timeline.spans()[0].label).name == "relu");
}

TEST_CASE("spans for which there is no room are counted") {
  Timeline timeline;
  const auto label = timeline.add({});
  timeline.open(2);
  for (int i = 0; i < 5; ++i) timeline.note(label, i, i + 1);
  timeline.close();
  CHECK(timeline.spans().size() == 2);
  CHECK(timeline.left_out() == 3);
}

TEST_CASE("threads may note at the same time, and while it is closed") {
  Timeline timeline;
  const auto label = timeline.add({});
  timeline.open(100'000);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int n = 0; n < 1000; ++n) const SpanHere span(&timeline, label);
    });
  for (std::thread& thread : threads) thread.join();
  timeline.close();
  CHECK(timeline.spans().size() == 4000);
  const SpanHere nobody_watches(nullptr, 0);
}

}  // namespace
}  // namespace fleetrun::timeline_test
