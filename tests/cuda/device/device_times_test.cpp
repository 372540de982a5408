// Times of ops as the device knows them, in a trace.
#include <doctest/doctest.h>

#include <algorithm>

#include "cuda/device/device_training.h"
#include "support/leave_out.h"

namespace fleetrun::runtime::device_times_test {
namespace {

using device_training::job_of, device_training::Samples, device_training::with_trainer;

constexpr std::int64_t kOfHost = 2'000'000;  // CUDA on the host says that everything takes a millisecond

// A step of lenet, traced after one that is not.
struct TracedStep {
  Timeline timeline;
  std::int64_t start = 0, end = 0;
  std::size_t ops = 0;

  TracedStep() {
    const auto train = [this](Trainer& trainer, comm::Communicator&) {
      const Samples samples(1);
      ops = trainer.executor().program().ops.size();
      trainer.step(samples.view(), 0.01);
      timeline.open(10'000);
      start = monotonic_ns();
      trainer.step(samples.view(), 0.01);
      trainer.score();
      end = monotonic_ns();
      timeline.close();
    };
    with_trainer(job_of(job::ModelName::lenet, std::nullopt), train, {.timeline = &timeline});
  }

  const SpanLabel& label(const Span& span) const { return timeline.labels()[span.label]; }
  std::vector<Span> spans(const std::vector<Lane>& lanes) const {
    std::vector<Span> found;
    for (const Span& span : timeline.spans())
      if (std::ranges::find(lanes, label(span).lane) != lanes.end()) found.push_back(span);
    return found;
  }
  void check_times(const std::vector<Span>& of) const {
    for (const Span& span : of) {
      CHECK(span.start_ns >= start);
      CHECK(span.start_ns <= span.end_ns);
      CHECK(span.end_ns <= end + kOfHost);
    }
  }
};

TEST_CASE("a trace tells for each op of a step when the device was at work on it") {
  if (test::make_test_device()->streams() == nullptr)
    LEAVE_OUT("the test's device works in the host's threads");
  const TracedStep step;
  const std::vector<Span> spans = step.spans({Lane::device, Lane::device_communication});
  CHECK(spans.size() == step.ops);
  step.check_times(spans);
}

TEST_CASE("a trace tells for each kernel of a step when the device was at work on it") {
  const auto device = test::make_test_device();
  if (device->make_activity_watch() == nullptr)
    LEAVE_OUT(device->choices().empty() ? "the test's device works in the host's threads"
                                        : device->choices().back());
  const TracedStep step;
  const std::vector<Span> spans = step.spans({Lane::device_kernels});
  step.check_times(spans);
  const auto of = [&](const std::string& category) {
    return std::ranges::count_if(spans,
                                 [&](const Span& span) { return step.label(span).category == category; });
  };
  CHECK(of("kernel") >= static_cast<std::ptrdiff_t>(step.ops) / 2);  // some ops copy, or do nothing
  for (const Span& span : spans) {
    CAPTURE(step.label(span).name);
    CHECK_FALSE(step.label(span).name.starts_with("_Z"));
    CHECK_FALSE(step.label(span).name.empty());
  }
}

}  // namespace
}  // namespace fleetrun::runtime::device_times_test
