#include "runtime/predict/predictor.h"

#include <algorithm>

#include "comm/collective/solo.h"
#include "runtime/checkpoint/weights.h"
#include "runtime/exec/propagate_layouts.h"
#include "runtime/graph/builder.h"
#include "runtime/graph/verify.h"

namespace fleetrun::runtime {
namespace {

// Those of the training's test pass, where this processor has them.
void use_algorithms(const ModelCard& card, Program& program, Device& device) {
  for (Op& op : program.ops) {
    const auto wanted = card.algorithms.find(program.value(op.outputs.front()).name);
    const auto kernel = device.kernels().find(op.type);
    if (wanted == card.algorithms.end() || kernel == device.kernels().end() ||
        kernel->second.algorithms == nullptr)
      continue;
    const auto known = kernel->second.algorithms({find_op(all_ops(), op.type), program, op}, device);
    if (std::ranges::find(known, wanted->second) != known.end()) op.attributes[kAlgorithm] = wanted->second;
  }
}

}  // namespace

Program build_prediction_program(const ModelCard& card, int batch) {
  Program program;
  Builder builder(program, all_ops());
  const auto& [channels, height, width] = *card.model.input_shape;
  const ValueId image = builder.feed("image", {batch, channels, height, width});
  program.fetches.push_back(build_model(builder, card.model, card.facts(), image, false));
  verify(program, all_ops());
  return program;
}

Predictor::Predictor(const ModelFile& model, int batch)
    : batch_(batch), device_(make_cpu_device()), solo_(comm::make_solo()) {
  device_->enter_thread(1);
  Program program = build_prediction_program(model.card, batch_);
  const Value& logits = program.value(program.fetches.front());
  output_ = logits.name;
  count_ = static_cast<std::size_t>(count_of(logits.shape));
  use_algorithms(model.card, program, *device_);
  propagate_layouts(program, all_ops(), *device_, {});
  storage_ = std::make_unique<Storage>(program, *device_, *solo_);
  const std::vector<ValueId> weights = weights_of(program);
  check_tensors(model.weights, model.path, weights, program);
  store_tensors(model.weights, weights, program, *storage_);
  executor_ = std::make_unique<Executor>(std::move(program), *device_, *storage_,
                                         std::vector<comm::Communicator*>{solo_.get()}, ExecutorOptions{});
}

std::span<const float> Predictor::logits(const float* images) {
  executor_->bind("image", images);
  executor_->run();
  return {static_cast<const float*>(executor_->fetch(output_)), count_};
}

void check_weights(const ModelFile& model) {
  const Program program = build_prediction_program(model.card, 1);
  check_tensors(model.weights, model.path, weights_of(program), program);
}

}  // namespace fleetrun::runtime
