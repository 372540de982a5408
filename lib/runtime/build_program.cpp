#include "runtime/build_program.h"

#include "runtime/graph/backward.h"
#include "runtime/graph/builder.h"
#include "runtime/graph/verify.h"
#include "runtime/optim/append_optimizer.h"

namespace fleetrun::runtime {
namespace {

// Adds feeds, model, losses [B] and hits; returns losses.
ValueId add_forward(Builder& builder, const job::JobSpec& job, const ModelFacts& facts, bool training) {
  const auto& [channels, height, width] = facts.input_shape;
  const std::int64_t batch = job.data.batch_size;
  const ValueId image = builder.feed("image", {batch, channels, height, width});
  const ValueId label = builder.feed("label", {batch}, DType::i32);
  const ValueId logits = build_model(builder, job.model, facts, image, training);
  const ValueId losses = builder
                             .add({.type = "softmax_with_cross_entropy",
                                   .inputs = {{"logits", logits}, {"label", label}},
                                   .name = "cross_entropy"})
                             .at(1);
  builder.program().value(losses).name = "losses";
  const ValueId hits = builder.op("hits", "accuracy", {{"x", logits}, {"label", label}});
  builder.program().fetches.push_back(hits);
  return losses;
}

}  // namespace

Program build_training_program(const job::JobSpec& job, const ModelFacts& facts, const OpTable& ops,
                               const PassSettings& settings) {
  Program program;
  Builder builder(program, ops);
  const ValueId losses = add_forward(builder, job, facts, true);
  const ValueId loss = builder.op("loss", "mean", {{"x", losses}});
  program.fetches.push_back(loss);
  append_backward(builder, loss);
  append_optimizer(builder, job.optimizer);
  verify(program, ops);
  run_passes(program,
             {.ops = ops,
              .strategy = job.strategy,
              .world_size = settings.world_size,
              .device_ops = settings.device_ops,
              .messages = settings.messages},
             settings.watcher);
  return program;
}

Program build_evaluation_program(const job::JobSpec& job, const ModelFacts& facts, const OpTable& ops) {
  Program program;
  Builder builder(program, ops);
  program.fetches.push_back(add_forward(builder, job, facts, false));
  verify(program, ops);
  return program;
}

}  // namespace fleetrun::runtime
