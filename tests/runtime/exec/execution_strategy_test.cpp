// What execution_strategy and the orders of build_strategy do to the steps of a training, seen by spans and counters.
#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <memory>

#include "comm/collective/solo.h"
#include "runtime/kernels/device.h"
#include "runtime/training/trainer/trainer.h"
#include "support/run_world.h"

namespace fleetrun::runtime::execution_strategy_test {
namespace {

constexpr int kBatch = 4;
constexpr ModelFacts kFacts = {.input_shape = {3, 8, 8}, .classes = 10};
constexpr std::size_t kMostSpans = 100000;

job::JobSpec job_of(job::ModelName model) {
  job::JobSpec job;
  job.model.name = model;
  job.data.batch_size = kBatch;
  return job;
}

struct Batch {
  std::vector<float> images = std::vector<float>(kBatch * 3 * 8 * 8, 0.5F);
  std::vector<std::int32_t> labels = std::vector<std::int32_t>(kBatch, 1);
  BatchView view() const { return {images.data(), labels.data()}; }
};

struct Watched {
  explicit Watched(const job::JobSpec& job, comm::Communicator& communicator)
      : trainer(job, kFacts, *device, communicator, {.timeline = &timeline}) {}

  void step() { trainer.step(batch.view(), 0.01); }

  // Those of one step.
  std::vector<Span> spans_of_step() {
    timeline.open(kMostSpans);
    step();
    timeline.close();
    return timeline.spans();
  }
  const SpanLabel& label(const Span& span) const { return timeline.labels()[span.label]; }

  std::unique_ptr<Device> device = make_cpu_device();
  Timeline timeline;
  Batch batch;
  Trainer trainer;
};

TEST_CASE("activation memory is given back after every n steps, and never with 0") {
  for (const int every : {0, 1, 3}) {
    job::JobSpec job = job_of(job::ModelName::lenet);
    job.strategy.execution_strategy.num_iteration_per_drop_scope = every;
    const auto solo = comm::make_solo();
    Watched watched(job, *solo);
    std::vector<std::int64_t> drops;
    for (int step = 0; step < 7; ++step) {
      watched.step();
      drops.push_back(watched.trainer.executor().drops());
    }
    CAPTURE(every);
    if (every == 0) CHECK(drops == std::vector<std::int64_t>(7, 0));
    if (every == 1) CHECK(drops == std::vector<std::int64_t>{0, 1, 2, 3, 4, 5, 6});
    if (every == 3) CHECK(drops == std::vector<std::int64_t>{0, 0, 0, 1, 1, 1, 2});
  }
}

TEST_CASE("cache_runtime_context: no name is looked up in a step, but for those after a drop") {
  for (const bool cached : {false, true}) {
    job::JobSpec job = job_of(job::ModelName::lenet);
    job.strategy.execution_strategy.num_iteration_per_drop_scope = 2;
    job.strategy.build_strategy.cache_runtime_context = cached;
    const auto solo = comm::make_solo();
    Watched watched(job, *solo);
    std::int64_t arguments = 0;
    for (const Op& op : watched.trainer.executor().program().ops)
      for (const auto* ids : {&op.inputs, &op.outputs})
        arguments += std::count_if(ids->begin(), ids->end(), [](ValueId id) { return id != kNone; });
    std::vector<std::int64_t> lookups;
    for (int step = 0; step < 4; ++step) {
      const std::int64_t before = watched.trainer.executor().name_lookups();
      watched.step();
      lookups.push_back(watched.trainer.executor().name_lookups() - before);
    }
    CAPTURE(cached);
    if (cached)
      CHECK(lookups == std::vector<std::int64_t>{0, 0, arguments, 0});
    else
      CHECK(lookups == std::vector<std::int64_t>(4, arguments));
  }
}

// Of a step of two ranks, by rank 0.
struct Updates {
  std::int64_t first_start = std::numeric_limits<std::int64_t>::max();
  std::int64_t backward_end = 0;
};

Updates updates_with(bool come_last) {
  job::JobSpec job = job_of(job::ModelName::resnet20);
  job.strategy.fuse_grad_size_in_MB = 0.01;
  job.strategy.execution_strategy.num_threads = 8;  // more than the backward pass has to do at once
  job.strategy.build_strategy.enable_backward_optimizer_op_deps = come_last;
  Updates updates;
  testing::run_world(2, [&](comm::Communicator& communicator) {
    Watched watched(job, communicator);
    watched.trainer.share_parameters();
    watched.step();
    const std::vector<Span> spans = watched.spans_of_step();
    if (communicator.rank() != 0) return;
    for (const Span& span : spans) {
      const std::string& role = watched.label(span).category;
      if (role == "optimize") updates.first_start = std::min(updates.first_start, span.start_ns);
      if (role == "backward") updates.backward_end = std::max(updates.backward_end, span.end_ns);
    }
  });
  return updates;
}

TEST_CASE("enable_backward_optimizer_op_deps: no update starts before the backward pass has ended") {
  const Updates last = updates_with(true);
  CHECK(last.first_start >= last.backward_end);
}

TEST_CASE("without enable_backward_optimizer_op_deps the first updates run beside the backward pass") {
  constexpr int kTries = 200;  // a busy machine may keep the thread from it that has nothing else to do
  bool early = false;
  for (int i = 0; i < kTries && !early; ++i) {
    const Updates updates = updates_with(false);
    early = updates.first_start < updates.backward_end;
  }
  CHECK(early);
}

TEST_CASE(
    "enable_sequential_execution: with several threads every step still runs in the order of the program") {
  job::JobSpec job = job_of(job::ModelName::resnet20);
  job.strategy.execution_strategy.num_threads = 8;
  job.strategy.build_strategy.enable_sequential_execution = true;
  const auto solo = comm::make_solo();
  Watched watched(job, *solo);
  for (int step = 0; step < 10; ++step) {
    std::vector<Span> spans = watched.spans_of_step();
    std::erase_if(spans, [&](const Span& span) { return watched.label(span).name == "drop_scope"; });
    std::sort(spans.begin(), spans.end(),
              [](const Span& a, const Span& b) { return a.start_ns < b.start_ns; });
    REQUIRE(spans.size() == watched.trainer.executor().program().ops.size());
    bool ordered = true;
    for (std::size_t i = 1; i < spans.size(); ++i)
      ordered = ordered && spans[i - 1].end_ns <= spans[i].start_ns && spans[i - 1].label < spans[i].label;
    CHECK(ordered);
  }
}

TEST_CASE("one thread runs the ops in the same order in every step") {
  const auto solo = comm::make_solo();
  Watched watched(job_of(job::ModelName::resnet20), *solo);
  const auto order = [&] {
    std::vector<Timeline::Label> labels;
    for (const Span& span : watched.spans_of_step()) labels.push_back(span.label);
    return labels;
  };
  const auto first = order();
  for (int step = 0; step < 5; ++step) CHECK(order() == first);
}

}  // namespace
}  // namespace fleetrun::runtime::execution_strategy_test
