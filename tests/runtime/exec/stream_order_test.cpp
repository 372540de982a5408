// The executor on a device that works beside the host: every access is ordered, and no event too many.
#include "runtime/exec/stream_order.h"

#include <doctest/doctest.h>

#include "runtime/exec/stand_in_run.h"

namespace fleetrun::runtime::stream_order_test {
namespace {

using test::StandInDevice, test::TrainingRun;

constexpr ModelFacts kPhotographs = {.input_shape = {3, 224, 224}, .classes = 1000};
constexpr ModelFacts kSmallImages = {.input_shape = {3, 32, 32}, .classes = 10};

TEST_CASE(
    "steps of ResNet-50 on several streams leave no access unordered, with one op in flight and with three") {
  for (const int threads : {1, 3}) {
    CAPTURE(threads);
    TrainingRun run(job::ModelName::resnet50, kPhotographs, {.threads = threads});
    for (int step = 0; step < 3; ++step) run.step();
    CHECK(run.fetch("loss") != nullptr);
    CHECK(run.device.kernels_run() == 3 * run.ops);
    CHECK(run.device.disorder() == std::vector<std::string>{});
  }
}

constexpr int kFeeds =
    3;  // the first events of a step: after the last reader of a place, and before the next

TEST_CASE("every event between compute and collectives is needed: without it the stand-in finds a disorder") {
  TrainingRun run(job::ModelName::resnet20, kSmallImages, {});
  for (int step = 0; step < 2; ++step) run.step();
  const int before = run.device.holds();
  run.step();
  const int holds = run.device.holds() - before;
  // Into the all-reduces from the ops that make gradients (those of batch_norm and fc make two), out of all 65. Of the 43
  // such ops 6 are made in front of another one whose gradient travels first: to wait for that one is enough.
  CHECK(holds == 2 * kFeeds + 37 + 65);
  REQUIRE(run.device.disorder().empty());
  for (int hold = 2 * kFeeds; hold < holds; ++hold) {
    CAPTURE(hold);
    run.device.forget_holds({hold});
    run.step();
    CHECK(!run.device.disorder().empty());
    run.device.forget_disorder();
    run.fetch("loss");  // everything in order again
  }
}

TEST_CASE("a batch on its way waits for the readers of its place, and the step for the batch") {
  TrainingRun run(job::ModelName::lenet, kSmallImages, {});
  for (const std::set<int>& forgotten : {std::set<int>{0, 2, 4}, std::set<int>{1, 3, 5}}) {
    run.fetch("loss");
    for (int step = 0; step < 2; ++step) run.step();
    REQUIRE(run.device.disorder().empty());
    run.device.forget_holds(forgotten);
    run.step();
    CHECK(!run.device.disorder().empty());
    run.device.forget_disorder();
  }
}

TEST_CASE("a trainer touches no memory of a device that works beside the host") {
  job::JobSpec job;
  job.model.name = job::ModelName::lenet;
  job.model.dropout = 0.5;
  job.data.batch_size = TrainingRun::kBatch;
  StandInDevice device;
  comm::MemoryStore store;
  const auto communicator = device.make_communicator({store, 0, 1}, 0);
  Trainer trainer(job, {.input_shape = {1, 28, 28}, .classes = 10}, device, *communicator);
  trainer.share_parameters();
  const std::vector<float> images(TrainingRun::kBatch * 28 * 28);
  const std::vector<std::int32_t> labels(TrainingRun::kBatch);
  const BatchView batch = {images.data(), labels.data()};
  for (int step = 0; step < 3; ++step) trainer.step(batch, 0.1);
  CHECK(trainer.score().loss == 0);  // the stand-in's memory reads as zeros
  trainer.evaluate(batch);
  CHECK(trainer.finish_evaluation().samples == 0);
  CHECK(trainer.storage().read("f1.weight").size() > 0);
  CHECK(trainer.time_alone(1).size() == trainer.executor().program().ops.size());
  CHECK(device.disorder() == std::vector<std::string>{});
}

}  // namespace
}  // namespace fleetrun::runtime::stream_order_test
