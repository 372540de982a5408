// A trained model that answers: images in, a number for each class out.
#pragma once
#include <memory>
#include <span>
#include <vector>

#include "comm/collective/communicator.h"
#include "runtime/exec/executor.h"
#include "runtime/exec/storage.h"
#include "runtime/kernels/device.h"
#include "runtime/predict/model_file.h"

namespace fleetrun::runtime {

// The network as the test pass of a training runs it, without labels: f32, batch norms with their running statistics.
// Feed: image f32[batch,C,H,W]. Fetch: the logits f32[batch,classes], which is the only one.
Program build_prediction_program(const ModelCard& card, int batch);

// It computes with one thread: with another number oneDNN splits some sums differently, and rounds differently.
class Predictor {
 public:
  // Throws Error(data) for weights that are not those of the card's model.
  Predictor(const ModelFile& model, int batch);

  int batch() const { return batch_; }

  // `images`: as the feed. The logits stay until the next call. Those of an image do not depend on the other images.
  std::span<const float> logits(const float* images);

 private:
  int batch_;
  std::string output_;  // name of the fetch
  std::size_t count_;   // of its elements
  std::unique_ptr<Device> device_;
  std::unique_ptr<comm::Communicator> solo_;
  std::unique_ptr<Storage> storage_;
  std::unique_ptr<Executor> executor_;
};

// Throws Error(data) for weights that are not those of the card's model.
void check_weights(const ModelFile& model);

}  // namespace fleetrun::runtime
