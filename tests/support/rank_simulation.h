// What the tests of strategies that differ from rank to rank share: gradients of one rank's batch, and distances in double precision.
#pragma once
#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "comm/collective/solo.h"
#include "support/reference_optimizer.h"
#include "support/slowdown.h"
#include "support/small_training.h"

namespace fleetrun::runtime::test {

// Sanitizers look for wrong memory accesses, and one model on one number of ranks is enough for that. They make the references slow.
inline std::vector<int> simulated_ranks() {
  return testing::kSlowdown > 1 ? std::vector<int>{2} : std::vector<int>{1, 2, 4};
}
inline std::vector<job::ModelName> simulated_models() {
  using enum job::ModelName;
  return testing::kSlowdown > 1 ? std::vector{lenet} : std::vector{lenet, resnet20};
}

inline Tensors widened(const Weights& weights) {
  Tensors tensors;
  for (const auto& [name, values] : weights) tensors[name] = Tensor(values.begin(), values.end());
  return tensors;
}

// In parts of the norm of each tensor, the largest.
inline double distance(const Tensors& wanted, const Tensors& found) {
  constexpr double kLeastNorm = 1e-2;
  double most = 0;
  for (const auto& [name, values] : wanted) {
    Tensor difference(values.size());
    std::transform(values.begin(), values.end(), found.at(name).begin(), difference.begin(), std::minus<>());
    most = std::max(most, norm_of(difference) / std::max(norm_of(values), kLeastNorm));
  }
  return most;
}

// One rank by itself that never updates anything: gradients and losses at given weights.
class SoloGradients {
 public:
  explicit SoloGradients(job::JobSpec job) : solo_(comm::make_solo()), device_(make_cpu_device()) {
    job.optimizer = {.name = job::OptimizerName::sgd};
    job.strategy = {};
    job.strategy.cudnn_exhaustive_search = false;
    trainer_ = std::make_unique<Trainer>(job, kTrainedFacts, *device_, *solo_);
  }

  Tensors at(const Weights& weights, const BatchView& batch) {
    for (const auto& [name, values] : weights) trainer_->storage().write(name, values);
    trainer_->step(batch, 0);
    const Program& program = trainer_->executor().program();
    Tensors gradients;
    for (const auto& [name, values] : weights) {
      const ValueId gradient = program.gradient_of(program.find(name));
      const std::vector<float> found = trainer_->storage().read(program.value(gradient).name);
      gradients[name] = Tensor(found.begin(), found.end());
    }
    return gradients;
  }

  double loss() const { return trainer_->score().loss; }  // of that batch

 private:
  std::unique_ptr<comm::Communicator> solo_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<Trainer> trainer_;
};

// The weights of each rank before each step and after the last one: [step][rank].
using WeightsByStep = std::vector<std::vector<Weights>>;

inline WeightsByStep watch_training(const job::JobSpec& job, int ranks, int steps,
                                    const std::function<double(int step)>& rate) {
  const int batch = job.data.batch_size;
  WeightsByStep seen(static_cast<std::size_t>(steps) + 1,
                     std::vector<Weights>(static_cast<std::size_t>(ranks)));
  run_trainers(job, ranks, [&](TrainedRank& rank) {
    const auto own = static_cast<std::size_t>(rank.communicator.rank());
    rank.trainer.share_parameters();
    seen[0][own] = weights_of(rank.trainer);
    for (int step = 0; step < steps; ++step) {
      train_steps(rank, batch, step, step + 1, rate(step));
      seen[static_cast<std::size_t>(step) + 1][own] = weights_of(rank.trainer);
    }
  });
  return seen;
}

}  // namespace fleetrun::runtime::test
