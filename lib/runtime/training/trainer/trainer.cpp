#include "runtime/training/trainer/trainer.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error/error.h"
#include "job/spec/step_share.h"
#include "runtime/checkpoint/owned_tensors.h"
#include "runtime/checkpoint/rank_states.h"
#include "runtime/checkpoint/weights.h"
#include "runtime/compile/build_program.h"
#include "runtime/graph/owner_of.h"
#include "runtime/graph/program_text.h"
#include "runtime/optim/average_weights.h"
#include "runtime/optim/local_training.h"
#include "runtime/optim/loss_scaling.h"
#include "runtime/passes/pipeline/stage_program.h"
#include "runtime/training/setup/compute_options.h"

namespace fleetrun::runtime {
namespace {

// The type that strategy.amp asks for, if the device has kernels in it.
DType narrow_type(const job::StrategySpec& strategy, const Device& device) {
  const std::vector<DType> has = device.narrow_types();
  const job::AmpType asked = strategy.amp_configs.dtype;
  if (!strategy.amp) return DType::bf16;
  if (asked == job::AmpType::automatic && !has.empty()) return has.front();
  const DType wanted = asked == job::AmpType::fp16 ? DType::f16 : DType::bf16;
  if (asked != job::AmpType::automatic && std::find(has.begin(), has.end(), wanted) != has.end())
    return wanted;
  std::string types = "f32 only";
  if (!has.empty()) types = fmt::format("f32 and {}", describe(has.front()));
  throw Error(
      ErrorKind::config,
      fmt::format("strategy.amp is true{}, but {} computes in {} here",
                  asked == job::AmpType::automatic
                      ? ""
                      : fmt::format(" and amp_configs.dtype {}", wanted == DType::f16 ? "fp16" : "bf16"),
                  device.name(), types),
      has.empty() ? "strategy.amp=false trains in f32"
                  : "strategy.amp_configs.dtype=auto takes what there is");
}

bool is_written(const Program& program, ValueId id) {
  return std::ranges::any_of(
      program.ops, [id](const Op& op) { return std::ranges::find(op.outputs, id) != op.outputs.end(); });
}

// Until the first update, the moving averages are the weights.
void start_averages(const Program& program, Storage& storage) {
  for (const ValueId id : program.of_kind(ValueKind::parameter)) {
    const std::string& name = program.value(id).name;
    if (storage.has(average_name(name))) storage.write(average_name(name), storage.read(name));
  }
}

}  // namespace

Trainer::Trainer(const job::JobSpec& job, const ModelFacts& facts, Device& device,
                 const Communicators& communicators, const TrainerOptions& wanted)
    : communicator_(communicators.flat),
      same_layers_(*communicators.same_layers),
      stages_(job::stages_of(job.strategy, communicator_.size())),
      micro_batches_(job.strategy.pipeline ? job::micro_batches_of(job, stages_)
                                           : job::MicroBatches{job.data.batch_size, 1}),
      facts_(facts) {
  const OpTable& ops = all_ops();
  ExecutorOptions options = executor_options(job, communicator_.rank() / stages_, wanted.threads);
  options.team = team_within_limit(options.team, device, pass_messages_);
  device.enter_thread(options.team);  // layouts may depend on the team

  const OpNames device_ops = ops_of(device.kernels());
  Programs programs = build_programs(job, facts, ops,
                                     {.world_size = communicator_.size(),
                                      .device_ops = &device_ops,
                                      .messages = &pass_messages_,
                                      .watcher = wanted.watcher,
                                      .narrow = narrow_type(job.strategy, device),
                                      .feeds = wanted.feeds},
                                     {device, communicator_, search_options(job.strategy, options.team)});
  search_ = std::move(programs.search);
  whole_ = std::move(programs.whole);
  program_text_ = print_program(whole_, ops) + print_program(programs.smaller_whole, ops);

  if (job.data.class_weights)
    sample_weights_.emplace(
        job::plan_shares(job, communicator_.size()).of(communicator_.rank() / stages_).count);
  storage_ = std::make_unique<Storage>(programs.training, device, *communicators.gradients.front());
  storage_->initialise(static_cast<std::uint64_t>(job.train.seed));
  if (job.optimizer.ema_decay > 0) start_averages(whole_, *storage_);
  evaluation_ = std::make_unique<Executor>(std::move(programs.evaluation), device, *storage_,
                                           communicators.gradients, options);
  options.timeline = wanted.timeline;
  training_ = std::make_unique<Executor>(std::move(programs.training), device, *storage_,
                                         communicators.gradients, options);
  if (moves_loss_scale()) training_->fetch_too(std::string(kLossScale));
  tell_recording();
}

void Trainer::tell_recording() {
  const RecordedRuns* const recorded = training_->recorded();
  if (recorded == nullptr) return;
  pass_messages_.push_back(recorded->why_not().empty()
                               ? "CUDA graphs: the device is to repeat each step from a recording"
                               : "CUDA graphs: not used, since " + recorded->why_not());
}

// Without a pipeline, only rank 0 reads model.pretrained, and share_parameters() sends it to the others before the first step. So the ranks
// cannot start with different files. With sharding, each rank gets its part here, because the moving averages start from it. In a
// pipeline, each rank reads the weights of its own stage.
std::vector<std::string> Trainer::start_from_pretrained(const job::JobSpec& job) {
  if (!job.model.pretrained) return {};
  std::optional<Pretrained> loaded;
  if (communicator_.rank() == 0 || job.strategy.pipeline)
    loaded = load_pretrained(job.model, whole_, *storage_);
  if (job.strategy.sharding) {
    share_parameters();
    std::int64_t new_weights = loaded ? loaded->new_weights : 0;
    communicator_.broadcast({&new_weights, 1, DType::i64}, 0);
    std::vector<ValueId> weights = weights_of(whole_);
    weights.resize(weights.size() - static_cast<std::size_t>(new_weights));
    hand_out_owned(loaded ? &loaded->file : nullptr, weights, whole_, *storage_, communicator_);
  }
  if (job.optimizer.ema_decay > 0) start_averages(whole_, *storage_);
  return loaded ? loaded->lines : std::vector<std::string>();
}

void Trainer::share_parameters() {
  storage_->broadcast(same_layers_, 0);
  if (stages_ > 1) share_common_states();
  for (const auto& [weight, snapshot] : snapshots_of(whole_))
    storage_->write(whole_.value(snapshot).name, storage_->read(whole_.value(weight).name));
}

void Trainer::begin_evaluation() {
  if (trains_locally(whole_))
    average_weights();
  else
    share_statistics();
}

// Replaces what evaluations read by its mean over the ranks, and keeps this rank's own values. With optimizer.ema_evaluate, evaluations
// read the moving averages of the parameters. Frozen weights stay as they are: they are equal on all ranks, and their mean could be
// rounded.
void Trainer::average_weights() {
  const Program& program = evaluation_->program();
  for (const ValueKind kind : {ValueKind::parameter, ValueKind::state})
    for (const ValueId id : program.of_kind(kind)) {
      const std::string& name = program.value(id).name;
      if (!is_written(whole_, whole_.find(name))) continue;
      std::vector<float> values = storage_->read(name);
      other_weights_[name] = values;
      average_over_ranks(values, communicator_);
      storage_->write(name, values);
    }
}

void Trainer::exchange_weights() {
  for (auto& [name, values] : other_weights_) {
    std::vector<float> here = storage_->read(name);
    storage_->write(name, values);
    values = std::move(here);
  }
}

std::uint64_t Trainer::fingerprint() const {
  if (!trains_locally(whole_)) return storage_->fingerprint();
  std::vector<std::string> names;
  for (const auto& [weight, snapshot] : snapshots_of(whole_)) names.push_back(whole_.value(snapshot).name);
  return storage_->fingerprint_of(names);
}

// Those that each stage of a pipeline has. Everything else is on one rank only.
void Trainer::share_common_states() {
  for (const ValueId id : whole_.of_kind(ValueKind::state)) {
    if (owner_of_user(whole_, id) != kNone) continue;
    std::vector<float> values = storage_->read(whole_.value(id).name);
    communicator_.broadcast({values.data(), values.size(), DType::f32}, 0);
    storage_->write(whole_.value(id).name, values);
  }
}

void Trainer::share_statistics() {
  if (same_layers_.size() == 1) return;
  std::vector<ValueId> here = running_statistics_of(whole_);
  std::erase_if(here, [&](ValueId id) { return !storage_->has(whole_.value(id).name); });
  std::vector<float> packed;
  for (const ValueId id : here) {
    const std::vector<float> values = storage_->read(whole_.value(id).name);
    packed.insert(packed.end(), values.begin(), values.end());
  }
  if (packed.empty()) return;
  same_layers_.broadcast({packed.data(), packed.size(), DType::f32}, 0);
  if (same_layers_.rank() == 0) return;
  auto next = packed.begin();
  for (const ValueId id : here) {
    const auto end = next + count_of(whole_.value(id).shape);
    storage_->write(whole_.value(id).name, {next, end});
    next = end;
  }
}

// Ranks that train by themselves count their own batches.
BatchView Trainer::weighted(const BatchView& batch) {
  if (!sample_weights_) return batch;
  comm::Communicator* const ranks = trains_locally(whole_) ? nullptr : &communicator_;
  BatchView weighted = batch;
  weighted.weights = sample_weights_->of_batch(batch.labels, ranks);
  return weighted;
}

void Trainer::step(const BatchView& plain, double learning_rate) {
  const BatchView batch = weighted(plain);
  learning_rate_ = static_cast<float>(learning_rate);
  training_->bind("learning_rate", &learning_rate_);
  for (int i = 0; i < micro_batches_.count; ++i)
    bind_samples(*training_, micro_batch(batch, i), i, micro_batches_.count);
  const std::uint64_t sent = training_->sent_bytes();
  training_->run();
  sent_bytes_ += training_->sent_bytes() - sent;
}

BatchView Trainer::micro_batch(const BatchView& batch, int number) const {
  const auto& [channels, height, width] = facts_.input_shape;
  return samples_from(batch, std::int64_t{number} * micro_batches_.size,
                      std::int64_t{channels} * height * width);
}

Score Trainer::score() const {
  std::array<float, 4> sums{};  // of the losses of the micro-batches, then of the hits
  const double to_own_loss = sample_weights_ ? sample_weights_->to_own_loss() : 1;
  for (int i = 0; i < micro_batches_.count && is_last_stage(); ++i) {
    const auto fetched = [&](const char* name) {
      return static_cast<const float*>(training_->fetch(name_in_micro_batch(name, i, micro_batches_.count)));
    };
    sums[0] += *fetched("loss");
    for (std::size_t k = 0; k < 3; ++k) sums[k + 1] += fetched("hits")[k];
  }
  sums[0] = static_cast<float>(double{sums[0]} * to_own_loss);  // the gradients are of the loss of all ranks
  if (stages_ > 1) communicator_.broadcast({sums.data(), sums.size(), DType::f32}, stages_ - 1);
  const float samples = std::max(1.0F, sums[3]);
  return {.loss = sums[0] / static_cast<float>(micro_batches_.count),
          .acc1 = sums[1] / samples,
          .acc5 = acc5_of(sums[2] / samples, facts_.classes),
          .samples = static_cast<std::int64_t>(sums[3])};
}

bool Trainer::moves_loss_scale() const {
  const ValueId scale = whole_.find(kLossScale);
  return scale != kNone && whole_.value(scale).kind == ValueKind::state;
}

std::optional<float> Trainer::loss_scale() const {
  if (!moves_loss_scale()) return std::nullopt;
  return *static_cast<const float*>(training_->fetch(std::string(kLossScale)));
}

void Trainer::evaluate(const BatchView& batch) {
  for (int i = 0; i < micro_batches_.count; ++i) evaluate_some(micro_batch(batch, i));
}

void Trainer::evaluate_some(const BatchView& samples) {
  bind_samples(*evaluation_, samples);
  evaluation_->run();
  if (!is_last_stage()) return;
  const ValueId losses = evaluation_->program().find("losses");
  const auto* loss = static_cast<const float*>(evaluation_->fetch("losses"));
  const auto* hits = static_cast<const float*>(evaluation_->fetch("hits"));
  evaluated_.add({loss, static_cast<std::size_t>(count_of(evaluation_->program().value(losses).shape))},
                 hits);
}

void Trainer::end_evaluation() {
  exchange_weights();
  other_weights_.clear();
}

Score Trainer::finish_evaluation() {
  const Score score = evaluated_.reduce(communicator_, facts_.classes);
  end_evaluation();
  return score;
}

}  // namespace fleetrun::runtime
