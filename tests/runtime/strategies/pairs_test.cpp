// Every pair of strategies either trains, with finite weights that are equal on all ranks and to the same bits after a resume, or is refused
// when the job is read, as docs/strategies.md says.
#include <doctest/doctest.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <fstream>
#include <string>
#include <vector>

#include "base/error/error.h"
#include "job/parse_job.h"
#include "support/resumed_training.h"
#include "support/slowdown.h"

namespace fleetrun::runtime::pairs_test {
namespace {

constexpr int kBatch = 2;  // of a rank
constexpr int kSaved = 3;  // steps; between two updates of gradient_merge
constexpr int kSteps = 6;

using Words = std::vector<std::string>;

struct Strategy {
  std::string name;
  Words settings;       // as after a job file
  std::string group{};  // of one group, there is one, because they set the same key
  Words excludes{};     // names of strategies and groups
  Words words{};  // one of them names it in an error and in the table of docs/strategies.md; empty: its name
  bool is_local = false;  // ranks differ between two averages
  int ranks = 2;          // that it needs
  bool needs_batch_norms = false;
  bool needs_narrow = false;  // instructions for bf16
};

const Words kNotInPipelines = {"amp",    "fp16_allreduce", "gradient_merge", "sync_batch_norm",
                               "reduce", "sharding",       "localsgd",       "adaptive_localsgd",
                               "dgc"};
const Words kNotLocal = {"localsgd", "adaptive_localsgd", "lars",           "lamb",   "adam",    "adamw",
                         "dgc",      "fp16_allreduce",    "gradient_merge", "reduce", "sharding"};
constexpr const char* kAnyOptimizer = "any optimizer but";

const std::vector<Strategy>& strategies() {
  static const std::vector<Strategy> all = {
      {.name = "amp",
       .settings = {"strategy.amp=true"},
       .excludes = {"fp16_allreduce"},
       .needs_narrow = true},
      {.name = "fp16_allreduce", .settings = {"strategy.fp16_allreduce=true"}},
      {.name = "pipeline",
       .settings = {"strategy.pipeline=true"},
       .group = "pipeline",
       .excludes = kNotInPipelines},
      {.name = "pipeline, F-then-B",
       .settings = {"strategy.pipeline=true", "strategy.pipeline_configs.schedule_mode=F-then-B"},
       .group = "pipeline",
       .excludes = kNotInPipelines,
       .words = {"pipeline"}},
      {.name = "two pipelines",
       .settings = {"strategy.pipeline=true", "strategy.hybrid_configs.pp_degree=2"},
       .group = "pipeline",
       .excludes = kNotInPipelines,
       .words = {"pipeline"},
       .ranks = 4},
      {.name = "recompute", .settings = {"strategy.recompute=true"}},
      {.name = "gradient_merge",
       .settings = {"strategy.gradient_merge=true", "strategy.gradient_merge_configs.k_steps=2"}},
      {.name = "lars",
       .settings = {"strategy.lars=true", R"(strategy.lars_configs.exclude_from_weight_decay=["bias"])"},
       .excludes = {"lamb", "adam", "adamw", "use_nesterov"}},
      {.name = "lamb",
       .settings = {"optimizer.name=adam", "strategy.lamb=true",
                    R"(strategy.lamb_configs.exclude_from_weight_decay=["bias"])"},
       .excludes = {"adamw"},
       .words = {"lamb", "adam"}},
      {.name = "adam",
       .settings = {"optimizer.name=adam"},
       .group = "optimizer.name",
       .words = {"adam", kAnyOptimizer}},
      {.name = "adamw",
       .settings = {"optimizer.name=adamw", "optimizer.weight_decay=0.01"},
       .group = "optimizer.name",
       .words = {"adamw", kAnyOptimizer}},
      {.name = "use_nesterov",
       .settings = {"optimizer.use_nesterov=true"},
       .excludes = {"adam", "adamw", "lamb"}},
      {.name = "clip by value",
       .settings = {"optimizer.gradient_clip.by=value", "optimizer.gradient_clip.limit=0.01"},
       .group = "clip",
       .words = {"value"}},
      {.name = "clip by norm",
       .settings = {"optimizer.gradient_clip.by=norm", "optimizer.gradient_clip.limit=0.1"},
       .group = "clip"},
      {.name = "clip by global norm",
       .settings = {"optimizer.gradient_clip.by=global_norm", "optimizer.gradient_clip.limit=0.1"},
       .group = "clip",
       .words = {"global_norm"}},
      {.name = "factors of the learning rate", .settings = {R"(optimizer.learning_rate_factors={"f": 0.5})"}},
      {.name = "averages", .settings = {"optimizer.ema_decay=0.5", "optimizer.ema_evaluate=true"}},
      {.name = "localsgd",
       .settings = {"strategy.localsgd=true", "strategy.localsgd_configs.k_steps=4"},
       .excludes = kNotLocal,
       .is_local = true},
      {.name = "adaptive_localsgd",
       .settings = {"strategy.adaptive_localsgd=true", "strategy.adaptive_localsgd_configs.init_k_steps=9"},
       .excludes = kNotLocal,
       .is_local = true},
      {.name = "dgc",
       .settings =
           {"model.hidden=[96, 8]",  // the first weights are large
            "strategy.dgc=true",
            R"(strategy.dgc_configs={"rampup_begin_step": 1, "rampup_step": 4, "sparsity": [0.9, 0.99]})"},
       .excludes = {"amp", "fp16_allreduce", "gradient_merge", "lars", "lamb", "adam", "adamw", "reduce",
                    "sharding", "clip by value", "clip by global norm"}},
      {.name = "sync_batch_norm", .settings = {"strategy.sync_batch_norm=true"}, .needs_batch_norms = true},
      {.name = "no fuse_all_reduce_ops", .settings = {"strategy.fuse_all_reduce_ops=false"}},
      {.name = "last_comm_group_size_MB", .settings = {"strategy.last_comm_group_size_MB=0.001"}},
      {.name = "fuse_all_optimizer_ops", .settings = {"strategy.build_strategy.fuse_all_optimizer_ops=true"}},
      {.name = "Reduce", .settings = {"strategy.build_strategy.reduce_strategy=Reduce"}, .group = "reduce"},
      {.name = "Reduce with fused broadcasts",
       .settings = {"strategy.build_strategy.reduce_strategy=Reduce",
                    "strategy.build_strategy.fuse_broadcast_ops=true"},
       .group = "reduce",
       .words = {"Reduce"}},
      {.name = "sharding, stage 1",
       .settings = {"strategy.sharding=true"},
       .group = "sharding",
       .words = {"sharding"}},
      {.name = "sharding, stage 2",
       .settings = {"strategy.sharding=true", "strategy.sharding_configs.stage=2"},
       .group = "sharding",
       .words = {"sharding"}},
      {.name = "sharding, stage 3",
       .settings = {"strategy.sharding=true", "strategy.sharding_configs.stage=3"},
       .group = "sharding",
       .words = {"sharding"}},
      {.name = "sharding in two sets",
       .settings = {"strategy.sharding=true", "strategy.sharding_configs.stage=2",
                    "strategy.sharding_configs.sharding_degree=2"},
       .group = "sharding",
       .words = {"sharding"},
       .ranks = 4},
      {.name = "hierarchical all-reduce",
       .settings = {"strategy.use_hierarchical_allreduce=true",
                    "strategy.hierarchical_allreduce_inter_nranks=2"},
       .ranks = 4},
      {.name = "two communicators", .settings = {"strategy.nccl_comm_num=2"}},
      {.name = "asynchronous sums", .settings = {"strategy.sync_nccl_allreduce=false"}},
      {.name = "three threads", .settings = {"strategy.execution_strategy.num_threads=3"}},
      {.name = "program order", .settings = {"strategy.build_strategy.enable_sequential_execution=true"}},
      {.name = "early updates",
       .settings = {"strategy.build_strategy.enable_backward_optimizer_op_deps=false"}},
      {.name = "fused activations",
       .settings = {"strategy.build_strategy.fuse_bn_act_ops=true",
                    "strategy.build_strategy.fuse_elewise_add_act_ops=true"}},
      {.name = "auto fusion", .settings = {"strategy.build_strategy.enable_auto_fusion=true"}},
      {.name = "no place twice", .settings = {"strategy.build_strategy.enable_inplace=false"}},
      {.name = "memory given back",
       .settings = {"strategy.execution_strategy.num_iteration_per_drop_scope=2"}},
      {.name = "sums instead of means", .settings = {"strategy.build_strategy.gradient_scale_strategy=One"}},
      {.name = "unused parameters", .settings = {"strategy.find_unused_parameters=true"}},
  };
  return all;
}

// The later one's settings win.
Words settings_of(const Strategy& a, const Strategy& b) {
  Words settings = a.settings;
  for (const std::string& setting : b.settings) {
    const std::string key = setting.substr(0, setting.find('=') + 1);
    std::erase_if(settings, [&](const std::string& one) { return one.starts_with(key); });
    settings.push_back(setting);
  }
  return settings;
}

job::JobSpec job_with(const Strategy& a, const Strategy& b) {
  const bool has_norms = a.needs_batch_norms || b.needs_batch_norms;
  const std::string model =
      has_norms ? R"({"name": "resnet20"})" : R"({"name": "mlp", "hidden": [12, 8, 8], "dropout": 0.25})";
  Words settings = settings_of(a, b);
  if (has_norms) std::erase_if(settings, [](const std::string& one) { return one.starts_with("model."); });
  const std::string data =
      R"({"train": {"format": "synthetic", "samples": 64, "shape": [3, 8, 8], "classes": 10}, "batch_size": 2})";
  return job::parse_job_text(R"({"model": )" + model + R"(, "data": )" + data +
                                 R"(, "optimizer": {"name": "momentum", "momentum": 0.9}})",
                             "job.json", settings)
      .spec;
}

bool names(const Words& list, const Strategy& strategy) {
  return std::find(list.begin(), list.end(), strategy.name) != list.end() ||
         (!strategy.group.empty() && std::find(list.begin(), list.end(), strategy.group) != list.end());
}

bool exclude_each_other(const Strategy& a, const Strategy& b) {
  return names(a.excludes, b) || names(b.excludes, a);
}

// Those that do not set the same key.
std::vector<std::pair<Strategy, Strategy>> pairs() {
  const std::vector<Strategy>& all = strategies();
  std::vector<std::pair<Strategy, Strategy>> pairs;
  for (std::size_t i = 0; i < all.size(); ++i)
    for (std::size_t k = i + 1; k < all.size(); ++k)
      if (all[i].group.empty() || all[i].group != all[k].group) pairs.emplace_back(all[i], all[k]);
  return pairs;
}

std::string complaint_about(const Strategy& a, const Strategy& b) {
  try {
    job_with(a, b);
    return "";
  } catch (const Error& error) {
    return error.message();
  }
}

// The first cells of the table of pairs that exclude each other.
Words documented_exclusions() {
  std::ifstream file(FLEETRUN_SOURCE_DIR "/docs/strategies.md");
  Words cells;
  bool in_table = false;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("| not together")) in_table = true;
    if (!line.starts_with("|")) in_table = false;
    if (in_table) cells.push_back(line.substr(0, line.find('|', 1)));
  }
  return cells;
}

// Not as a part of a longer word, such as adam of adamw.
bool has_word(const std::string& text, const std::string& word) {
  const auto goes_on = [&](std::size_t at) {
    return at < text.size() && (std::isalnum(static_cast<unsigned char>(text[at])) != 0 || text[at] == '_');
  };
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1))
    if (!goes_on(at - 1) && !goes_on(at + word.size())) return true;
  return false;
}

bool is_named(const Strategy& strategy, const std::string& text) {
  const Words words = strategy.words.empty() ? Words{strategy.name} : strategy.words;
  return std::any_of(words.begin(), words.end(),
                     [&](const std::string& word) { return has_word(text, word); });
}

struct Found {
  explicit Found(int ranks) : of_rank(static_cast<std::size_t>(ranks)), evaluated(of_rank.size()) {}
  std::vector<test::Weights> of_rank, evaluated;
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

Found train(const job::JobSpec& job, int ranks, const Snapshot* from) {
  Found found(ranks);
  test::run_trainers(job, ranks, [&](test::TrainedRank& rank) {
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

bool all_agree(const std::vector<test::Weights>& of_rank) {
  return std::all_of(of_rank.begin(), of_rank.end(), [&](const auto& one) {
    return agree(of_rank.front(), one) && agree(of_rank.back(), one);
  });
}

// Equal weights on all ranks, but a stage of a pipeline has only those of its layers.
bool belong_together(const job::JobSpec& job, const std::vector<test::Weights>& of_rank) {
  if (!all_agree(of_rank)) return false;
  if (!job.strategy.pipeline) return true;
  const test::Weights &first = of_rank[0], &second = of_rank[1];
  return !first.empty() && !second.empty() && std::none_of(first.begin(), first.end(), [&](const auto& one) {
    return second.contains(one.first);
  });
}

bool is_same(const Snapshot& a, const Snapshot& b) {
  if (a.files.size() != b.files.size()) return false;
  for (const auto& [name, tensors] : a.files)
    if (format_tensors(tensors) != format_tensors(b.files.at(name))) return false;
  return true;
}

TEST_CASE("every pair of strategies is accepted, or refused by an error that names both and is in the docs") {
  const Words documented = documented_exclusions();
  REQUIRE(documented.size() > 15);
  int refused = 0;
  for (const auto& [a, b] : pairs()) {
    CAPTURE(a.name);
    CAPTURE(b.name);
    const std::string complaint = complaint_about(a, b);
    CAPTURE(complaint);
    CHECK(complaint.empty() != exclude_each_other(a, b));
    if (complaint.empty()) continue;
    ++refused;
    CHECK(is_named(a, complaint));
    CHECK(is_named(b, complaint));
    CHECK(complaint.find("wanted") != std::string::npos);
    CHECK(std::any_of(documented.begin(), documented.end(),
                      [&, &first = a, &second = b](const std::string& cell) {
                        return is_named(first, cell) && is_named(second, cell);
                      }));
  }
  CHECK(refused > 70);
}

TEST_CASE(
    "every pair of strategies that is accepted trains, on ranks that stay equal, and goes on from a checkpoint to the same bits") {
  const std::size_t stride = testing::kSlowdown > 1 ? 13 : 1;  // with sanitizers, every 13th pair
  const bool has_narrow = !make_cpu_device()->narrow_types().empty();
  std::size_t number = 0;
  for (const auto& [a, b] : pairs()) {
    const bool is_missing = !has_narrow && (a.needs_narrow || b.needs_narrow);
    if (exclude_each_other(a, b) || is_missing || number++ % stride != 0) continue;
    CAPTURE(a.name);
    CAPTURE(b.name);
    const job::JobSpec job = job_with(a, b);
    const int ranks = std::max(a.ranks, b.ranks);
    const Found whole = train(job, ranks, nullptr);
    CHECK(are_finite(whole.of_rank[0]));
    CHECK(belong_together(job, whole.of_rank) != (a.is_local || b.is_local));
    CHECK(all_agree(whole.evaluated));
    const Found resumed = train(job, ranks, &whole.saved);
    CHECK(whole.of_rank == resumed.of_rank);
    CHECK(is_same(whole.last, resumed.last));
  }
}

}  // namespace
}  // namespace fleetrun::runtime::pairs_test
