// Small trainings on ranks that are threads, with samples that are random but the same in every test.
#pragma once
#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "comm/make_communicator.h"
#include "comm/rendezvous/memory_store.h"
#include "comm/rendezvous/part_of_store.h"
#include "job/spec/settle_strategy.h"
#include "runtime/kernels/device.h"
#include "runtime/tensor/philox.h"
#include "runtime/training/trainer/trainer.h"
#include "runtime/training/trainer/training_communicators.h"
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

// Makes thread worlds of the ranks that ask for one.
class ThreadWorlds {
 public:
  // A rank of a world of `size` ranks.
  comm::World world_of(int rank, int size) {
    RankEnv env;
    env.rank = rank;
    env.world_size = size;
    const comm::MakeCommunicator make = [this](const comm::Party& party, const std::string& name) {
      return join(party, name);
    };
    return {env, std::make_unique<comm::PartOfStore>(store_, ""), make({store_, rank, size}, "world"), make};
  }

 private:
  std::unique_ptr<comm::Communicator> join(const comm::Party& party, const std::string& name) {
    std::string key = name;
    for (int rank = 0; rank < party.size; ++rank) key += "," + std::to_string(party.name_of(rank));
    const std::lock_guard lock(mutex_);
    auto& world = worlds_[key];
    if (world.empty()) world = comm::make_thread_world(party.size);
    return std::move(world[static_cast<std::size_t>(party.rank)]);
  }

  comm::MemoryStore store_;
  std::mutex mutex_;
  std::map<std::string, std::vector<std::unique_ptr<comm::Communicator>>> worlds_;  // by name and ranks
};

// Calls `body` on each of `ranks` ranks, with a trainer for batches of job.data.batch_size.
inline void run_trainers(job::JobSpec job, int ranks, const RankBody& body) {
  job.strategy = job::settle_strategy(job.strategy, {.all = ranks, .of_node = ranks}).strategy;
  job.strategy.cudnn_exhaustive_search = false;  // the algorithm that rounds alike in every program
  ThreadWorlds worlds;
  testing::run_ranks(ranks, [&](int rank) {
    comm::World world = worlds.world_of(rank, ranks);
    const auto device = make_cpu_device();
    const TrainingCommunicators communicators(job.strategy, world, *device);
    Trainer trainer(job, kTrainedFacts, *device, communicators.all());
    TrainedRank trained = {trainer, *world.communicator};
    body(trained);
  });
}

// Steps first to last - 1 of a rank.
inline void train_steps(TrainedRank& rank, int batch, int first, int last, double rate) {
  for (int step = first; step < last; ++step) {
    const int stages = rank.trainer.stages();
    const StepSamples samples(step, batch * rank.communicator.size() / stages);
    rank.trainer.step(samples.part(batch * (rank.communicator.rank() / stages)), rate);
  }
}

}  // namespace fleetrun::runtime::test
