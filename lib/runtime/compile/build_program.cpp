#include "runtime/compile/build_program.h"

#include <optional>
#include <utility>

#include <fmt/format.h>

#include "job/spec/settle_pipeline.h"
#include "job/spec/step_share.h"
#include "runtime/compile/check_frozen.h"
#include "runtime/graph/builder.h"
#include "runtime/graph/verify.h"

namespace fleetrun::runtime {
namespace {

// Adds feeds, model, losses [B] and hits; returns losses.
ValueId add_forward(Builder& builder, const job::JobSpec& job, const ModelFacts& facts, std::int64_t batch,
                    bool training) {
  const auto& [channels, height, width] = facts.input_shape;
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
ValueId add_training_forward(Program& program, const job::JobSpec& job, const ModelFacts& facts, int batch,
                             const PassContext& context) {
  Builder builder(program, context.ops, job.model.freeze);
  const ValueId losses = add_forward(builder, job, facts, batch, true);
  const ValueId loss = job.data.class_weights
                           ? builder.op("loss", "weighted_mean",
                                        {{"x", losses}, {"weight", builder.feed("sample_weight", {batch})}})
                           : builder.op("loss", "mean", {{"x", losses}});
  program.fetches.push_back(loss);
  check_batch_norms(program, context.ops, job.strategy.sync_batch_norm ? context.world_size : 1);
  check_frozen(program, job.model.freeze, context);
  return loss;
}

// What all programs of a job have in common.
struct Recipe {
  const job::JobSpec& job;
  const ModelFacts& facts;
  const OpTable& ops;
  const PassSettings& settings;
  job::StepShares shares;
};

PassContext make_context(const Recipe& recipe, int batch) {
  return {.ops = recipe.ops,
          .strategy = recipe.job.strategy,
          .world_size = job::replicas_of(recipe.job, recipe.settings.world_size),
          .device_ops = recipe.settings.device_ops,
          .messages = recipe.settings.messages,
          .share_of_step = static_cast<double>(batch) / static_cast<double>(recipe.shares.samples),
          .stages = job::stages_of(recipe.job.strategy, recipe.settings.world_size)};
}

// The training program of the ranks with the smallest share of a step, without a device; without ops if all shares are equal.
Program build_smaller_program(const Recipe& recipe) {
  if (recipe.shares.are_equal()) return {};
  PassContext context = make_context(recipe, recipe.shares.smallest());
  context.messages = nullptr;  // they are those of the larger program
  Compilation compilation = {.job = recipe.job,
                             .context = context,
                             .narrow = recipe.settings.narrow,
                             .feeds = recipe.settings.feeds};
  compilation.loss =
      add_training_forward(compilation.training, recipe.job, recipe.facts, recipe.shares.smallest(), context);
  run_passes(compilation);
  return std::move(compilation.training);
}

// For whom the programs are.
struct Receiver {
  const Target* target = nullptr;  // null: for any device
  std::optional<int> rank = {};    // none: the programs of all ranks
};

Programs compile(const job::JobSpec& whole_job, const ModelFacts& facts, const OpTable& ops,
                 const PassSettings& settings, const Receiver& receiver) {
  job::JobSpec job = whole_job;
  job::MicroBatches micro_batches;
  if (job.strategy.pipeline) {
    micro_batches = job::micro_batches_of(whole_job, job::stages_of(job.strategy, settings.world_size));
    job.data.batch_size = micro_batches.size;
  }
  const Recipe recipe = {job, facts, ops, settings, job::plan_shares(job, settings.world_size)};
  const int batch = recipe.shares.largest();
  const PassContext context = make_context(recipe, batch);
  Compilation compilation = {.job = job,
                             .context = context,
                             .narrow = settings.narrow,
                             .target = receiver.target,
                             .rank = receiver.rank,
                             .micro_batches = micro_batches.count,
                             .feeds = settings.feeds};
  compilation.loss = add_training_forward(compilation.training, job, facts, batch, context);
  if (receiver.target != nullptr) {
    compilation.smaller = build_smaller_program(recipe);
    compilation.takes_smaller = recipe.shares.of(*receiver.rank).count < batch;
  }
  if (receiver.rank) compilation.evaluation = build_evaluation_program(job, facts, ops, settings.world_size);
  run_passes(compilation, settings.watcher);
  return {.training = std::move(compilation.training),
          .evaluation = std::move(compilation.evaluation),
          .whole = std::move(compilation.whole),
          .smaller_whole = std::move(compilation.smaller),
          .search = std::move(compilation.search)};
}

}  // namespace

Program build_training_program(const job::JobSpec& job, const ModelFacts& facts, const OpTable& ops,
                               const PassSettings& settings) {
  return compile(job, facts, ops, settings, {}).training;
}

Program build_part_of_rank(const job::JobSpec& job, const ModelFacts& facts, const OpTable& ops,
                           const PassSettings& settings, int rank) {
  return compile(job, facts, ops, settings, {.rank = rank}).training;
}

Programs build_programs(const job::JobSpec& job, const ModelFacts& facts, const OpTable& ops,
                        const PassSettings& settings, const Target& target) {
  return compile(job, facts, ops, settings, {.target = &target, .rank = target.communicator.rank()});
}

Program build_evaluation_program(const job::JobSpec& job, const ModelFacts& facts, const OpTable& ops,
                                 int ranks) {
  Program program;
  Builder builder(program, ops, job.model.freeze);
  const int batch = job::plan_shares(job, ranks).largest();
  program.fetches.push_back(add_forward(builder, job, facts, batch, false));
  verify(program, ops);
  return program;
}

}  // namespace fleetrun::runtime
