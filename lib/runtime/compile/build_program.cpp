#include "runtime/compile/build_program.h"

#include <fmt/format.h>

#include "runtime/compile/check_frozen.h"
#include "runtime/graph/builder.h"
#include "runtime/graph/verify.h"

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

// Returns the loss.
ValueId add_training_forward(Program& program, const job::JobSpec& job, const ModelFacts& facts,
                             const PassContext& context) {
  Builder builder(program, context.ops, job.model.freeze);
  const ValueId losses = add_forward(builder, job, facts, true);
  const ValueId loss = builder.op("loss", "mean", {{"x", losses}});
  program.fetches.push_back(loss);
  check_batch_norms(program, context.ops, job.strategy.sync_batch_norm ? context.world_size : 1);
  check_frozen(program, job.model.freeze, context);
  return loss;
}

Programs compile(const job::JobSpec& job, const ModelFacts& facts, const OpTable& ops,
                 const PassSettings& settings, const Target* target) {
  const PassContext context = {.ops = ops,
                               .strategy = job.strategy,
                               .world_size = settings.world_size,
                               .device_ops = settings.device_ops,
                               .messages = settings.messages};
  Compilation compilation = {.job = job, .context = context, .narrow = settings.narrow, .target = target};
  compilation.loss = add_training_forward(compilation.training, job, facts, context);
  if (target != nullptr) compilation.evaluation = build_evaluation_program(job, facts, ops);
  run_passes(compilation, settings.watcher);
  return {.training = std::move(compilation.training),
          .evaluation = std::move(compilation.evaluation),
          .whole = std::move(compilation.whole),
          .search = std::move(compilation.search)};
}

}  // namespace

Program build_training_program(const job::JobSpec& job, const ModelFacts& facts, const OpTable& ops,
                               const PassSettings& settings) {
  return compile(job, facts, ops, settings, nullptr).training;
}

Programs build_programs(const job::JobSpec& job, const ModelFacts& facts, const OpTable& ops,
                        const PassSettings& settings, const Target& target) {
  return compile(job, facts, ops, settings, &target);
}

Program build_evaluation_program(const job::JobSpec& job, const ModelFacts& facts, const OpTable& ops) {
  Program program;
  Builder builder(program, ops, job.model.freeze);
  program.fetches.push_back(add_forward(builder, job, facts, false));
  verify(program, ops);
  return program;
}

}  // namespace fleetrun::runtime
