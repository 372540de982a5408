#include "runtime/checkpoint/snapshot.h"

#include <doctest/doctest.h>

#include "runtime/kernels/device.h"
#include "runtime/training/trainer/trainer.h"
#include "support/run_world.h"

namespace fleetrun::runtime::snapshot_test {
namespace {

constexpr const char* kMean = "bn1.running_mean";

job::JobSpec with_batch_norms() {
  job::JobSpec job;
  job.model.name = job::ModelName::resnet20;
  job.data.batch_size = 2;
  return job;
}

std::vector<float> filled(const Trainer& trainer, float value) {
  const Program& program = trainer.whole_program();
  return std::vector<float>(static_cast<std::size_t>(count_of(program.value(program.find(kMean)).shape)),
                            value);
}

TEST_CASE(
    "row 5: the running statistics that are saved, and evaluated with on every rank, are those of rank 0") {
  std::vector<float> means(2);
  testing::run_world(2, [&](comm::Communicator& communicator) {
    const auto device = make_cpu_device();
    Trainer trainer(with_batch_norms(), {.input_shape = {3, 8, 8}, .classes = 10}, *device, communicator);
    trainer.share_parameters();
    const int rank = communicator.rank();
    trainer.storage().write(kMean, filled(trainer, rank == 0 ? 3.0F : 7.0F));
    const Snapshot snapshot = take_snapshot({}, trainer.whole_program(), trainer.storage(), communicator);
    CHECK(snapshot.files.size() == (rank == 0 ? 2U : 0U));
    if (rank == 0) CHECK(snapshot.files.at("model.safetensors").at(kMean).values == filled(trainer, 3.0F));
    trainer.begin_evaluation();
    means[static_cast<std::size_t>(rank)] = trainer.storage().read(kMean).front();
  });
  CHECK(means == std::vector<float>{3, 3});
}

}  // namespace
}  // namespace fleetrun::runtime::snapshot_test
