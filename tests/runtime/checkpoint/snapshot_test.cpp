#include "runtime/checkpoint/snapshot.h"

#include <doctest/doctest.h>

#include "runtime/kernels/device.h"
#include "runtime/trainer.h"
#include "support/run_world.h"

namespace fleetrun::runtime::snapshot_test {
namespace {

constexpr const char* kMean = "bn1.running_mean";

// A checkpoint in which the second rank has a running mean of its own, which lies in `means`.
Checkpoint with_mean_of_rank_1(const Value& value, const std::vector<float>& means) {
  Checkpoint checkpoint;
  checkpoint.files["ranks.safetensors"].tensors[std::string("rank1/") + kMean] = {
      .dtype = DType::f32,
      .shape = value.shape,
      .bytes = {reinterpret_cast<const char*>(means.data()), means.size() * sizeof(float)}};
  return checkpoint;
}

// What each of two ranks goes on with.
std::vector<float> first_means(bool sync) {
  job::JobSpec job;
  job.model.name = job::ModelName::resnet20;
  job.data.batch_size = 2;
  job.strategy.sync_batch_norm = sync;
  std::vector<float> means(2);
  testing::run_world(2, [&](comm::Communicator& communicator) {
    const auto device = make_cpu_device();
    Trainer trainer(job, {.input_shape = {3, 8, 8}, .classes = 10}, *device, communicator, 1);
    trainer.share_parameters();
    const Program& program = trainer.whole_program();
    const Value& mean = program.value(program.find(kMean));
    const std::vector<float> sevens(static_cast<std::size_t>(count_of(mean.shape)), 7.0F);
    const Checkpoint checkpoint = with_mean_of_rank_1(mean, sevens);
    share_statistics(communicator.rank() == 0 ? &checkpoint : nullptr, program, trainer.storage(),
                     communicator);
    means[static_cast<std::size_t>(communicator.rank())] = trainer.storage().read(kMean).front();
  });
  return means;
}

TEST_CASE("each rank goes on with its own running statistics") {
  CHECK(first_means(false) == std::vector<float>{0, 7});
}

TEST_CASE("with sync_batch_norm all ranks go on with those of rank 0, whatever the checkpoint has of each") {
  CHECK(first_means(true) == std::vector<float>{0, 0});
}

}  // namespace
}  // namespace fleetrun::runtime::snapshot_test
