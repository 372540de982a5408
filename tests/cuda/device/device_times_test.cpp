// Times of ops as the device knows them, in a trace.
#include <doctest/doctest.h>

#include <algorithm>

#include "cuda/device/device_training.h"
#include "support/leave_out.h"

namespace fleetrun::runtime::device_times_test {
namespace {

using device_training::job_of, device_training::Samples, device_training::with_trainer;

TEST_CASE("a trace tells for each op of a step when the device was at work on it") {
  Timeline timeline;
  std::int64_t start = 0, end = 0;
  std::size_t ops = 0;
  const auto train = [&](Trainer& trainer, comm::Communicator&) {
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
  if (test::make_test_device()->streams() == nullptr)
    LEAVE_OUT("the test's device works in the host's threads");
  with_trainer(job_of(job::ModelName::lenet, std::nullopt), train, {.timeline = &timeline});
  std::vector<Span> spans;
  for (const Span& span : timeline.spans()) {
    const Lane lane = timeline.labels()[span.label].lane;
    if (lane == Lane::device || lane == Lane::device_communication) spans.push_back(span);
  }
  CHECK(spans.size() == ops);
  constexpr std::int64_t kOfHost = 2'000'000;  // CUDA on the host says that everything takes a millisecond
  for (const Span& span : spans) {
    CHECK(span.start_ns >= start);
    CHECK(span.start_ns <= span.end_ns);
    CHECK(span.end_ns <= end + kOfHost);
  }
}

}  // namespace
}  // namespace fleetrun::runtime::device_times_test
