// Times of ops on a device that works beside the host. On the stand-in each stamp comes a millisecond after the one before it.
#include "runtime/exec/device_times.h"

#include <doctest/doctest.h>

#include "runtime/exec/stand_in_run.h"

namespace fleetrun::runtime::device_times_test {
namespace {

using test::TrainingRun;

constexpr std::int64_t kMillisecond = 1'000'000;
constexpr ModelFacts kDigits = {.input_shape = {1, 28, 28}, .classes = 10};

// The spans of the timeline in this lane.
std::vector<Span> spans_in(const Timeline& timeline, Lane lane) {
  std::vector<Span> spans;
  for (const Span& span : timeline.spans())
    if (timeline.labels()[span.label].lane == lane) spans.push_back(span);
  return spans;
}

TEST_CASE("a trace tells when the device was at work on each op, and when the host gave it the op") {
  Timeline timeline;
  TrainingRun run(job::ModelName::lenet, kDigits, {.timeline = &timeline});
  run.step();
  timeline.open(1000);
  const std::int64_t start = monotonic_ns();
  run.step();
  timeline.close();
  run.step();
  const std::vector<Span> computed = spans_in(timeline, Lane::device),
                          sent = spans_in(timeline, Lane::device_communication);
  CHECK(computed.size() + sent.size() == run.ops);
  CHECK(sent.size() == spans_in(timeline, Lane::communication).size());
  CHECK_FALSE(sent.empty());
  const auto check_stream = [start](const std::vector<Span>& spans, int stream) {
    std::int64_t before = start + stream * test::StandInDevice::kStreamApart;
    const std::int64_t end = before + test::StandInDevice::kStreamApart;
    for (const Span& span : spans) {
      CHECK(span.end_ns - span.start_ns == kMillisecond);
      CHECK(span.start_ns > before);
      before = span.end_ns;
    }
    CHECK(before < end);
  };
  check_stream(computed, kComputeStream);
  check_stream(sent, kFirstCommunicatorStream);
}

TEST_CASE("an op that is measured took as long as the device was at work on it") {
  TrainingRun run(job::ModelName::lenet, kDigits, {.measure_ops = true});
  run.step();
  run.step();
  CHECK(run.executor().op_ns() == std::vector<std::int64_t>(run.ops, 2 * kMillisecond));
  run.executor().stop_measuring_ops();
  run.step();
  CHECK(run.executor().op_ns() == std::vector<std::int64_t>(run.ops, 2 * kMillisecond));
  for (const OpTime& op : run.executor().time_alone(3)) CHECK(op.seconds == doctest::Approx(1e-3));
}

TEST_CASE("ops that several threads give to a stream each have their own time") {
  TrainingRun run(job::ModelName::lenet, kDigits, {.threads = 3, .measure_ops = true});
  for (int step = 0; step < 5; ++step) run.step();
  CHECK(run.executor().op_ns() == std::vector<std::int64_t>(run.ops, 5 * kMillisecond));
}

TEST_CASE("a run with times leaves no access unordered") {
  TrainingRun run(job::ModelName::lenet, kDigits, {.threads = 3, .measure_ops = true});
  run.step();
  run.step();
  CHECK(run.device.disorder().empty());
}

}  // namespace
}  // namespace fleetrun::runtime::device_times_test
