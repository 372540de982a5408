// Every pair of strategies trains: with finite weights that are equal on both ranks, and to the same bits after a resume. Pairs that
// exclude each other are refused when the job is read (check_optimizer_test, check_pipeline_test).
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "support/resumed_training.h"
#include "support/slowdown.h"

namespace fleetrun::runtime::pairs_test {
namespace {

constexpr int kRanks = 2;
constexpr int kBatch = 2;  // of a rank
constexpr int kSaved = 3;  // steps; between two updates of gradient_merge
constexpr int kSteps = 6;

struct Strategy {
  const char* name;
  void (*turn)(job::JobSpec&);
  const char* group = "";  // of one group, there is one
  bool needs_batch_norms = false;
  bool needs_narrow = false;
  std::vector<std::string> excludes = {};  // names and groups
  bool is_local = false;                   // ranks differ between two averages
};

const std::vector<std::string> kNotLocal = {"local",          "optimizer", "fp16_allreduce",
                                            "gradient_merge", "reduce",    "sharding"};

const std::vector<Strategy>& strategies() {
  using Spec = job::JobSpec;
  static const std::vector<Strategy> all = {
      {"amp", [](Spec& s) { s.strategy.amp = true; }, "half precision", false, true},
      {"fp16_allreduce", [](Spec& s) { s.strategy.fp16_allreduce = true; }, "half precision"},
      {"pipeline",
       [](Spec& s) { s.strategy.pipeline = true; },
       "",
       false,
       false,
       {"half precision", "gradient_merge", "sync_batch_norm", "reduce", "sharding", "local"}},
      {"recompute", [](Spec& s) { s.strategy.recompute = true; }},
      {"gradient_merge",
       [](Spec& s) {
         s.strategy.gradient_merge = true;
         s.strategy.gradient_merge_configs.k_steps = 2;
       }},
      {"lars",
       [](Spec& s) {
         s.strategy.lars = true;
         s.strategy.lars_configs.exclude_from_weight_decay = {"bias"};
       },
       "optimizer"},
      {"lamb",
       [](Spec& s) {
         s.optimizer.name = job::OptimizerName::adam;
         s.strategy.lamb = true;
         s.strategy.lamb_configs.exclude_from_weight_decay = {"bias"};
       },
       "optimizer"},
      {"adamw",
       [](Spec& s) {
         s.optimizer.name = job::OptimizerName::adamw;
         s.optimizer.weight_decay = 0.01;
       },
       "optimizer"},
      {"clip by value",
       [](Spec& s) {
         s.optimizer.gradient_clip = {job::ClipBy::value, 0.01};
       },
       "clip"},
      {"clip by norm",
       [](Spec& s) {
         s.optimizer.gradient_clip = {job::ClipBy::norm, 0.1};
       },
       "clip"},
      {"clip by global norm",
       [](Spec& s) {
         s.optimizer.gradient_clip = {job::ClipBy::global_norm, 0.1};
       },
       "clip"},
      {"factors of the learning rate",
       [](Spec& s) {
         s.optimizer.learning_rate_factors = {{"f", 0.5}};
       }},
      {"averages",
       [](Spec& s) {
         s.optimizer.ema_decay = 0.5;
         s.optimizer.ema_evaluate = true;
       }},
      {"localsgd",
       [](Spec& s) {
         s.strategy.localsgd = true;
         s.strategy.localsgd_configs.k_steps = 4;
       },
       "local", false, false, kNotLocal, true},
      {"adaptive_localsgd",
       [](Spec& s) {
         s.strategy.adaptive_localsgd = true;
         s.strategy.adaptive_localsgd_configs.init_k_steps = 9;
       },
       "local", false, false, kNotLocal, true},
      {"dgc",
       [](Spec& s) {
         s.model.hidden = {96, 8};  // the first weights are large
         s.strategy.dgc = true;
         s.strategy.dgc_configs = {.rampup_begin_step = 1, .rampup_step = 4, .sparsity = {0.9, 0.99}};
       },
       "local",
       false,
       false,
       {"half precision", "gradient_merge", "optimizer", "reduce", "sharding", "clip by value",
        "clip by global norm"}},
      {"sync_batch_norm", [](Spec& s) { s.strategy.sync_batch_norm = true; }, "", true},
      {"no fuse_all_reduce_ops", [](Spec& s) { s.strategy.fuse_all_reduce_ops = false; }},
      {"fuse_all_optimizer_ops", [](Spec& s) { s.strategy.build_strategy.fuse_all_optimizer_ops = true; }},
      {"Reduce", [](Spec& s) { s.strategy.build_strategy.reduce_strategy = job::ReduceStrategy::Reduce; },
       "reduce"},
      {"Reduce with fused broadcasts",
       [](Spec& s) {
         s.strategy.build_strategy.reduce_strategy = job::ReduceStrategy::Reduce;
         s.strategy.build_strategy.fuse_broadcast_ops = true;
       },
       "reduce"},
      {"sharding, stage 1", [](Spec& s) { s.strategy.sharding = true; }, "sharding"},
      {"sharding, stage 2",
       [](Spec& s) {
         s.strategy.sharding = true;
         s.strategy.sharding_configs.stage = 2;
       },
       "sharding"},
      {"sharding, stage 3",
       [](Spec& s) {
         s.strategy.sharding = true;
         s.strategy.sharding_configs.stage = 3;
       },
       "sharding"},
      {"two communicators", [](Spec& s) { s.strategy.nccl_comm_num = 2; }},
      {"asynchronous sums", [](Spec& s) { s.strategy.sync_nccl_allreduce = false; }},
      {"three threads", [](Spec& s) { s.strategy.execution_strategy.num_threads = 3; }},
      {"program order", [](Spec& s) { s.strategy.build_strategy.enable_sequential_execution = true; }},
      {"early updates", [](Spec& s) { s.strategy.build_strategy.enable_backward_optimizer_op_deps = false; }},
      {"auto fusion", [](Spec& s) { s.strategy.build_strategy.enable_auto_fusion = true; }},
      {"no place twice", [](Spec& s) { s.strategy.build_strategy.enable_inplace = false; }},
      {"memory given back", [](Spec& s) { s.strategy.execution_strategy.num_iteration_per_drop_scope = 2; }},
      {"sums instead of means",
       [](Spec& s) { s.strategy.build_strategy.gradient_scale_strategy = job::GradientScale::One; }},
  };
  return all;
}

job::JobSpec job_with(const Strategy& a, const Strategy& b) {
  job::JobSpec job;
  const bool has_norms = a.needs_batch_norms || b.needs_batch_norms;
  job.model.name = has_norms ? job::ModelName::resnet20 : job::ModelName::mlp;
  job.model.hidden = {12, 8};
  job.model.dropout = 0.25;
  job.data.batch_size = kBatch;
  a.turn(job);
  b.turn(job);
  return job;
}

bool names(const std::vector<std::string>& list, const Strategy& strategy) {
  return std::find(list.begin(), list.end(), strategy.name) != list.end() ||
         std::find(list.begin(), list.end(), strategy.group) != list.end();
}

bool exclude_each_other(const Strategy& a, const Strategy& b) {
  const bool one_group = a.group[0] != '\0' && std::string(a.group) == b.group;
  return one_group || names(a.excludes, b) || names(b.excludes, a);
}

struct Found {
  std::vector<test::Weights> of_rank = std::vector<test::Weights>(kRanks);
  std::vector<test::Weights> evaluated = std::vector<test::Weights>(kRanks);
  Snapshot saved;  // after kSaved steps
  Snapshot last;
};

// Or their moving averages, with ema_evaluate.
test::Weights evaluated_weights(const Trainer& trainer) {
  test::Weights weights;
  const Program& program = trainer.evaluation_executor().program();
  for (const ValueId id : program.of_kind(ValueKind::parameter))
    if (const std::string& name = program.value(id).name; trainer.storage().has(name))
      weights[name] = trainer.storage().read(name);
  return weights;
}

Found train(const job::JobSpec& job, const Snapshot* from) {
  Found found;
  test::run_trainers(job, kRanks, [&](test::TrainedRank& rank) {
    if (from == nullptr) {
      rank.trainer.share_parameters();
      test::train_steps(rank, kBatch, 0, kSaved, 0.01);
      Snapshot saved = test::snapshot_after(rank, kSaved);
      if (rank.communicator.rank() == 0) found.saved = std::move(saved);
    } else {
      test::resume_from(*from, rank);
    }
    test::train_steps(rank, kBatch, kSaved, kSteps, 0.01);
    const auto at = static_cast<std::size_t>(rank.communicator.rank());
    found.of_rank[at] = test::weights_of(rank.trainer);
    rank.trainer.begin_evaluation();
    found.evaluated[at] = evaluated_weights(rank.trainer);
    rank.trainer.finish_evaluation();
    Snapshot last = test::snapshot_after(rank, kSteps);
    if (rank.communicator.rank() == 0) found.last = std::move(last);
  });
  return found;
}

bool are_finite(const test::Weights& weights) {
  return std::all_of(weights.begin(), weights.end(), [](const auto& one) {
    return std::all_of(one.second.begin(), one.second.end(),
                       [](float value) { return std::isfinite(value); });
  });
}

// In what both have: stage 3 of sharding gives each parameter to one rank.
bool agree(const test::Weights& a, const test::Weights& b) {
  return std::all_of(a.begin(), a.end(), [&](const auto& one) {
    const auto other = b.find(one.first);
    return other == b.end() || other->second == one.second;
  });
}

// Equal weights, or those of different layers.
bool belong_together(const job::JobSpec& job, const std::vector<test::Weights>& of_rank) {
  if (!job.strategy.pipeline) return agree(of_rank[0], of_rank[1]);
  return !of_rank[0].empty() && !of_rank[1].empty() &&
         std::none_of(of_rank[0].begin(), of_rank[0].end(),
                      [&](const auto& one) { return of_rank[1].contains(one.first); });
}

bool is_same(const Snapshot& a, const Snapshot& b) {
  if (a.files.size() != b.files.size()) return false;
  for (const auto& [name, tensors] : a.files)
    if (format_tensors(tensors) != format_tensors(b.files.at(name))) return false;
  return true;
}

TEST_CASE(
    "every pair of strategies trains, on ranks that stay equal, and goes on from a checkpoint to the same bits") {
  const std::vector<Strategy>& all = strategies();
  const std::size_t stride = testing::kSlowdown > 1 ? 7 : 1;           // with sanitizers, every 7th pair
  const bool has_narrow = !make_cpu_device()->narrow_types().empty();  // instructions for bf16
  std::size_t number = 0;
  for (std::size_t i = 0; i < all.size(); ++i)
    for (std::size_t k = i + 1; k < all.size(); ++k) {
      const bool is_missing = !has_narrow && (all[i].needs_narrow || all[k].needs_narrow);
      if (exclude_each_other(all[i], all[k]) || is_missing || number++ % stride != 0) continue;
      CAPTURE(std::string(all[i].name));
      CAPTURE(std::string(all[k].name));
      const job::JobSpec job = job_with(all[i], all[k]);
      const Found whole = train(job, nullptr);
      CHECK(are_finite(whole.of_rank[0]));
      CHECK(belong_together(job, whole.of_rank) != (all[i].is_local || all[k].is_local));
      CHECK(agree(whole.evaluated[0], whole.evaluated[1]));
      const Found resumed = train(job, &whole.saved);
      CHECK(whole.of_rank == resumed.of_rank);
      CHECK(is_same(whole.last, resumed.last));
    }
}

}  // namespace
}  // namespace fleetrun::runtime::pairs_test
