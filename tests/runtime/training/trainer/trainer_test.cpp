#include "runtime/training/trainer/trainer.h"

#include <doctest/doctest.h>

#include <vector>

#include "comm/rendezvous/memory_store.h"
#include "runtime/tensor/philox.h"
#include "support/run_world.h"
#include "support/test_device.h"

namespace fleetrun::runtime::trainer_test {
namespace {

TEST_CASE("evaluation normalises by the running statistics, which approach those of the batch") {
  constexpr int kBatch = 8;
  constexpr int kSteps = 150;  // 0.9^150 is about 1e-7: what is left of the statistics at the start
  constexpr ModelFacts kFacts = {.input_shape = {3, 12, 12}, .classes = 10};
  std::vector<float> images(kBatch * 3 * 12 * 12);
  for (std::size_t i = 0; i < images.size(); ++i) images[i] = unit_float(philox(3, 0, i)[0]) * 4 - 1;
  const std::vector<std::int32_t> labels = {0, 1, 2, 3, 4, 5, 6, 7};
  const BatchView batch = {images.data(), labels.data()};

  job::JobSpec job;
  job.model.name = job::ModelName::resnet20;
  job.data.batch_size = kBatch;
  testing::run_world(1, [&](comm::Communicator& all_ranks) {
    const auto device = test::make_test_device();
    comm::MemoryStore store;
    const auto of_device = device->make_communicator({store, 0, 1}, 0);
    Trainer trainer(job, kFacts, *device, of_device ? *of_device : all_ranks);
    const auto evaluated = [&] {
      trainer.evaluate(batch);
      return trainer.finish_evaluation().loss;
    };
    const double at_first = evaluated();
    CHECK(evaluated() == at_first);                                      // evaluating moves nothing
    for (int step = 0; step < kSteps; ++step) trainer.step(batch, 0.0);  // parameters stay
    CHECK(evaluated() == doctest::Approx(trainer.score().loss).epsilon(1e-4));
    CHECK(at_first != doctest::Approx(trainer.score().loss).epsilon(1e-2));
  });
}

}  // namespace
}  // namespace fleetrun::runtime::trainer_test
