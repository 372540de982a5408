#include "runtime/compile/build_program.h"

#include <fmt/format.h>

#include "runtime/graph/backward.h"
#include "runtime/graph/builder.h"
#include "runtime/graph/verify.h"
#include "runtime/optim/append_optimizer.h"
#include "runtime/optim/loss_scaling.h"
#include "runtime/passes/cast_forward.h"

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

// Returns the gradients that optimizers read.
std::vector<ValueId> add_backward(Builder& builder, const job::JobSpec& job, ValueId loss,
                                  const PassSettings& settings) {
  if (!job.strategy.amp) {
    append_backward(builder, loss);
    return builder.program().of_kind(ValueKind::gradient);
  }
  const job::AmpSpec& amp = job.strategy.amp_configs;
  const CastCounts counts = cast_forward(builder.program(), builder.ops(), amp, settings.narrow);
  if (settings.messages != nullptr)
    settings.messages->push_back(fmt::format("amp: {} of {} ops compute in {}, {} casts; {}", counts.narrow,
                                             counts.ops, describe(settings.narrow), counts.casts,
                                             describe_scaling(amp)));
  append_backward(builder, append_scaled_loss(builder, loss, amp));
  const bool of_some = job.strategy.build_strategy.reduce_strategy == job::ReduceStrategy::Reduce;
  return append_gradient_casts(
      builder, amp,
      {.one_by_one = settings.world_size > 1, .zero_one_by_one = settings.world_size > 1 && of_some});
}

// The variance of one value is 0: PaddlePaddle copies x then, PyTorch refuses too.
void check_batch_norms(const Program& program, const OpTable& ops, int ranks) {
  for (const Op& op : program.ops) {
    if (op.type != "batch_norm") continue;
    const OpView norm(find_op(ops, op.type), program, op);
    const Shape& x = norm.input("x").shape;
    if (norm.flag("training") && x[0] * x[2] * x[3] * ranks < 2)
      norm.fail(fmt::format("x is {}: training wants more than one value per channel", describe(x)));
  }
}

}  // namespace

Program build_training_program(const job::JobSpec& job, const ModelFacts& facts, const OpTable& ops,
                               const PassSettings& settings) {
  Program program;
  Builder builder(program, ops);
  const ValueId losses = add_forward(builder, job, facts, true);
  const ValueId loss = builder.op("loss", "mean", {{"x", losses}});
  program.fetches.push_back(loss);
  check_batch_norms(program, ops, job.strategy.sync_batch_norm ? settings.world_size : 1);
  append_optimizer(builder, job.optimizer, add_backward(builder, job, loss, settings));
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
