// Small trainings on the test's device, with samples that are the same in every test.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "comm/rendezvous/memory_store.h"
#include "runtime/tensor/philox.h"
#include "runtime/training/trainer/trainer.h"
#include "support/run_world.h"
#include "support/test_device.h"

namespace fleetrun::runtime::device_training {

constexpr int kBatch = 8, kSide = 12;
constexpr ModelFacts kFacts = {.input_shape = {3, kSide, kSide}, .classes = 10};
constexpr std::size_t kPixels = std::size_t{3} * kSide * kSide;

// Noise with one bright column. The label is the number of that column.
struct Samples {
  std::vector<float> images = std::vector<float>(kBatch * kPixels);
  std::vector<std::int32_t> labels = std::vector<std::int32_t>(kBatch);

  explicit Samples(int step) {
    const auto stream = static_cast<std::uint64_t>(step);
    for (std::size_t i = 0; i < images.size(); ++i) images[i] = unit_float(philox(1, stream, i)[0]) - 0.5F;
    for (std::size_t i = 0; i < labels.size(); ++i) {
      labels[i] = static_cast<std::int32_t>(philox(2, stream, i)[0] % 10);
      for (std::size_t row = 0; row < kSide; ++row)
        images[i * kPixels + row * kSide + static_cast<std::size_t>(labels[i])] += 1.0F;
    }
  }
  BatchView view() const { return {images.data(), labels.data()}; }
};

inline job::JobSpec job_of(job::ModelName model, std::optional<DType> narrow) {
  job::JobSpec job;
  job.model.name = model;
  job.data.batch_size = kBatch;
  job.strategy.cudnn_exhaustive_search =
      false;  // two searches could choose two engines, and CUDA on the host is slow
  job.strategy.amp = narrow.has_value();
  if (narrow)
    job.strategy.amp_configs.dtype = *narrow == DType::f16 ? job::AmpType::fp16 : job::AmpType::bf16;
  job.strategy.build_strategy.fuse_bn_act_ops = true;
  job.strategy.build_strategy.fuse_all_optimizer_ops = true;
  return job;
}

// One rank.
inline void with_trainer(const job::JobSpec& job,
                         const std::function<void(Trainer&, comm::Communicator&)>& use,
                         const TrainerOptions& options = {}) {
  testing::run_world(1, [&](comm::Communicator& of_host) {
    const auto device = test::named_device(job.strategy);
    comm::MemoryStore store;
    const auto of_device = device->make_communicator({store, 0, 1}, 0);
    comm::Communicator& communicator = of_device ? *of_device : of_host;
    Trainer trainer(job, kFacts, *device, communicator, options);
    use(trainer, communicator);
  });
}

inline std::vector<DType> narrow_types() { return test::make_test_device()->narrow_types(); }

// f32, and the narrow types of the device.
inline std::vector<std::optional<DType>> all_types() {
  std::vector<std::optional<DType>> types = {std::nullopt};
  for (const DType type : narrow_types()) types.emplace_back(type);
  return types;
}

}  // namespace fleetrun::runtime::device_training
