// data.class_weights: how much a sample counts in the loss of a training step, as in PyTorch's CrossEntropyLoss(weight=...).
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "comm/collective/communicator.h"
#include "job/spec/job_spec.h"
#include "runtime/data/formats/data_set.h"

namespace fleetrun::runtime {

// One weight for each of the model's classes. "balanced" is scikit-learn's samples / (classes * samples of the class), counting the
// classes that have samples; those without have 1. Throws Error(config) for weights that do not fit the classes.
std::vector<float> resolve_class_weights(const job::ClassWeights& wanted, const DataSet& train, int classes);

// "data.class_weights: from 0.54 (cat) to 6.5 (dog)"
std::string describe_class_weights(const std::vector<float>& weights, const DataSet& train);

// The weights of the samples in this rank's batch.
class SampleWeights {
 public:
  explicit SampleWeights(int batch) : weights_(static_cast<std::size_t>(batch), 1.0F) {}

  // One or more, all above 0. Until then, all samples count the same.
  void set_classes(std::vector<float> weights);

  // For each label the weight of its class, times the samples of the step, divided by the sum of the weights of the step; 0 for label
  // -1. So the mean over the step of weight * loss is sum(weight of class * loss) / sum(weight of class). The step is the batches of
  // all `ranks`, which call it together; null: this rank's batch alone. Valid until the next call.
  const float* of_batch(const std::int32_t* labels, comm::Communicator* ranks);

  // Times the mean over this rank's last batch of weight * loss, with the weights of of_batch(), it is the loss of this batch alone:
  // sum(weight of class * loss) / sum(weight of class). 1 where the step is this rank's batch.
  double to_own_loss() const { return to_own_loss_; }

 private:
  std::vector<float> of_classes_;
  std::vector<float> weights_;
  double to_own_loss_ = 1;
};

}  // namespace fleetrun::runtime
