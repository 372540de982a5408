// Small trainings on ranks that are threads, with samples that are random but the same in every test.
#pragma once
#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "job/settle_strategy.h"
#include "runtime/kernels/device.h"
#include "runtime/tensor/philox.h"
#include "runtime/training/trainer.h"
#include "support/run_world.h"

namespace fleetrun::runtime::test {

constexpr int kTrainedSide = 8;
constexpr int kTrainedClasses = 10;
constexpr ModelFacts kTrainedFacts = {.input_shape = {3, kTrainedSide, kTrainedSide},
                                      .classes = kTrainedClasses};
constexpr std::size_t kTrainedPixels = std::size_t{3} * kTrainedSide * kTrainedSide;

// The samples of all ranks in one step.
struct StepSamples {
  std::vector<float> images;
  std::vector<std::int32_t> labels;

  StepSamples(int step, int count)
      : images(static_cast<std::size_t>(count) * kTrainedPixels), labels(static_cast<std::size_t>(count)) {
    const auto stream = static_cast<std::uint64_t>(step);
    for (std::size_t i = 0; i < images.size(); ++i) images[i] = unit_float(philox(1, stream, i)[0]) - 0.5F;
    for (std::size_t i = 0; i < labels.size(); ++i)
      labels[i] = static_cast<std::int32_t>(philox(2, stream, i)[0] % kTrainedClasses);
  }
  BatchView part(int first) const {
    return {images.data() + static_cast<std::size_t>(first) * kTrainedPixels, labels.data() + first};
  }
};

using Weights = std::map<std::string, std::vector<float>>;

inline Weights weights_of(const Trainer& trainer) {
  Weights weights;
  const Program& program = trainer.executor().program();
  for (const ValueId id : program.of_kind(ValueKind::parameter))
    weights[program.value(id).name] = trainer.storage().read(program.value(id).name);
  return weights;
}

// One rank of a training, from the first step or from the middle of it.
struct TrainedRank {
  Trainer& trainer;
  comm::Communicator& communicator;
};
using RankBody = std::function<void(TrainedRank&)>;

// Calls `body` on each of `ranks` ranks, with a trainer for batches of job.data.batch_size.
inline void run_trainers(job::JobSpec job, int ranks, const RankBody& body) {
  job.strategy = job::settle_strategy(job.strategy, {.all = ranks, .of_node = ranks}).strategy;
  job.strategy.cudnn_exhaustive_search = false;  // the algorithm that rounds alike in every program
  std::vector<std::vector<std::unique_ptr<comm::Communicator>>> worlds;  // by communicator, by rank
  for (int i = 0; i <= job.strategy.nccl_comm_num; ++i) worlds.push_back(comm::make_thread_world(ranks));
  testing::run_ranks(ranks, [&](int rank) {
    std::vector<comm::Communicator*> of_gradients;
    for (auto& world : worlds) of_gradients.push_back(world[static_cast<std::size_t>(rank)].get());
    comm::Communicator& flat = *of_gradients.back();
    of_gradients.pop_back();
    const auto device = make_cpu_device();
    Trainer trainer(job, kTrainedFacts, *device, Communicators(flat, of_gradients), 1);
    TrainedRank trained = {trainer, flat};
    body(trained);
  });
}

// Steps first to last - 1 of a rank.
inline void train_steps(TrainedRank& rank, int batch, int first, int last, double rate) {
  for (int step = first; step < last; ++step) {
    const StepSamples samples(step, batch * rank.communicator.size());
    rank.trainer.step(samples.part(batch * rank.communicator.rank()), rate);
  }
}

}  // namespace fleetrun::runtime::test
