#include "runtime/training/save/resume.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <optional>
#include <ostream>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error/error.h"
#include "base/text/plural.h"
#include "base/text/printable.h"
#include "job/keys/job_keys.h"
#include "job/spec/settle_optimizer.h"
#include "job/spec/settle_pipeline.h"
#include "job/spec/step_share.h"
#include "runtime/checkpoint/correct_powers.h"
#include "runtime/checkpoint/manifest.h"
#include "runtime/checkpoint/rank_states.h"
#include "runtime/checkpoint/snapshot.h"
#include "runtime/data/formats/class_names.h"
#include "runtime/optim/loss_scaling.h"
#include "runtime/training/save/checkpoints_elsewhere.h"
#include "runtime/training/save/rate_after_resume.h"

namespace fleetrun::runtime {
namespace {

constexpr auto kLateView = std::chrono::seconds(5);  // of a shared folder, by which a node may see it late
constexpr auto kLookAgain = std::chrono::milliseconds(100);
constexpr const char* kStartAnew = "checkpoint.resume=never after the job file starts anew";

// "lars", also where strategy.lars makes it of momentum.
std::string optimizer_name(const job::JobSpec& job) {
  job::JobSpec settled = job;
  settled.optimizer = job::settle_optimizer(job);
  return job::value_text(std::move(settled), "optimizer.name");
}

MergedGradients merging_of(const job::JobSpec& job) {
  const job::StrategySpec& strategy = job.strategy;
  if (!strategy.gradient_merge) return {};
  std::string scale = "1";
  if (strategy.amp && scales_loss(strategy.amp_configs))
    scale = strategy.amp_configs.use_dynamic_loss_scaling
                ? "that follows overflows"
                : fmt::format("{}", strategy.amp_configs.init_loss_scaling);
  return {.k_steps = strategy.gradient_merge_configs.k_steps,
          .scaling = fmt::format("loss scale {}, {}", scale,
                                 job::value_text(job, "strategy.build_strategy.gradient_scale_strategy"))};
}

std::map<std::string, double> decays_of(const job::JobSpec& job) {
  using job::OptimizerName;
  const job::OptimizerSpec optimizer = job::settle_optimizer(job);
  std::map<std::string, double> decays;
  if (optimizer.name == OptimizerName::adam || optimizer.name == OptimizerName::adamw ||
      optimizer.name == OptimizerName::lamb)
    decays = {{"beta1", optimizer.beta1}, {"beta2", optimizer.beta2}};
  if (optimizer.ema_decay > 0) decays["ema_decay"] = optimizer.ema_decay;
  return decays;
}

TrainingState new_training(const job::JobSpec& job, const RankEnv& env, const DataSize& data) {
  return {.world_size = job::replicas_of(job, env.world_size),
          .batch_size = job::plan_shares(job, env.world_size).largest(),
          .seed = job.train.seed,
          .model = job::value_text(job, "model.name"),
          .optimizer = optimizer_name(job),
          .samples = data.samples,
          .global_batch = job.train.global_batch.value_or(0),
          .merged = merging_of(job),
          .decays = decays_of(job),
          .shuffle = job.data.shuffle,
          .uneven = job.data.uneven,
          .sampler = job.data.sampler,
          .split = data.split};
}

// A checkpoint is bad when files are missing or have wrong content. A disk that fails, a lack of memory or permission, and a
// newer version of fleetrun say nothing about its content.
bool is_bad_content(ErrorKind kind) {
  return kind == ErrorKind::data || kind == ErrorKind::missing || kind == ErrorKind::config;
}

// Prints newer checkpoints that are bad, and sets them aside so that they do not count as kept.
// Throws Error(permission|os|io|protocol) when a checkpoint may be good but cannot be read.
std::optional<Checkpoint> newest_good(CheckpointFolder& folder, std::int64_t least_number,
                                      const CheckpointedTraining& training) {
  std::vector<std::string> bad;
  std::string problems;
  for (const std::string& path : folder.list(least_number)) {
    std::optional<Checkpoint> checkpoint;
    try {
      checkpoint = read_checkpoint(path);
    } catch (const Error& problem) {
      if (!is_bad_content(problem.kind())) throw problem.with("reading the newest checkpoint");
      training.out << "warning: a checkpoint cannot be used: " << problem.message() << std::endl;
      problems += "\n  " + problem.message();
      bad.push_back(path);
      continue;
    }
    for (const std::string& worse : bad)
      training.out << "warning: set aside as " << printable(folder.set_aside(worse)) << std::endl;
    return checkpoint;
  }
  if (bad.empty()) return std::nullopt;
  throw Error(ErrorKind::data,
              fmt::format("none of the {} checkpoints in {} can be used:{}", bad.size(),
                          *training.job.checkpoint.dir, problems),
              kStartAnew);
}

// checkpoint.resume is about how a run begins: another attempt at it goes on from what the one before has kept.
std::optional<Checkpoint> find_checkpoint(const CheckpointedTraining& training, CheckpointFolder* folder) {
  const std::string& resume = training.job.checkpoint.resume;
  if (resume == "auto") return folder != nullptr ? newest_good(*folder, 0, training) : std::nullopt;
  if (folder != nullptr)
    if (std::optional<Checkpoint> own = newest_good(*folder, training.page.first_own_checkpoint, training))
      return own;
  if (resume == "never") return std::nullopt;
  return with_context("loading checkpoint.resume", [&] { return read_checkpoint(resume); });
}

void check_kind(const Checkpoint& checkpoint, const TrainingState& ours) {
  const TrainingState& theirs = checkpoint.state;
  if (theirs.model == ours.model && theirs.optimizer == ours.optimizer) return;
  throw Error(ErrorKind::data,
              fmt::format("checkpoint {} is of model {} with optimizer {}, the job has {} with {}",
                          checkpoint.path, theirs.model, theirs.optimizer, ours.model, ours.optimizer),
              kStartAnew);
}

// Of the model as the checkpoint has it; none in checkpoints that an older fleetrun wrote.
std::optional<ModelCard> card_of(const Checkpoint& checkpoint) {
  const Metadata& metadata = checkpoint.files.at(kModelFile).metadata;
  if (!metadata.contains("model.name")) return std::nullopt;
  return read_model_card(metadata, checkpoint.path);
}

// The model would answer with other names than it has learned. Returns a line for the user, or "".
std::string check_classes(const Checkpoint& checkpoint, const std::vector<std::string>& now) {
  const std::optional<ModelCard> card = card_of(checkpoint);
  if (!card) return "";
  const std::vector<std::string>& saved = card->class_names;
  const LabelNote note =
      compare_names_and_numbers({"checkpoint " + checkpoint.path, saved}, {"data.train", now});
  if (note.contradicts) throw Error(ErrorKind::data, note.text, kStartAnew);
  const std::size_t both = std::min(saved.size(), now.size());
  for (std::size_t label = 0; label < both; ++label)
    if (saved[label] != now[label])
      throw Error(ErrorKind::data,
                  fmt::format("class {} of checkpoint {} is {}, of data.train {}; the names must agree",
                              label, checkpoint.path, printable(saved[label]), printable(now[label])),
                  kStartAnew);
  return note.text.empty() ? "" : "warning: " + note.text;
}

// One image of another size among those of data.train makes all of them 224x224, which nobody may have meant.
void check_image_size(const Checkpoint& checkpoint, const CheckpointedTraining& training) {
  const std::optional<ModelCard> saved = card_of(checkpoint);
  const job::DataSetSpec& set = training.job.data.train;
  if (!saved || set.image_size || set.format == job::DataFormat::synthetic) return;
  const auto [channels, height, width] = *saved->model.input_shape;
  const auto [now_channels, now_height, now_width] = *training.card.model.input_shape;
  if (height == now_height && width == now_width) return;
  std::string hint = kStartAnew;
  if (height == width) hint = fmt::format("data.train.image_size={} makes them so again", height);
  if (height == width && now_height == now_width)
    hint += fmt::format(
        ", and data.train.image_size={} resumes the training with images of this size if the model "
        "takes images of any size",
        now_height);
  throw Error(
      ErrorKind::data,
      fmt::format("the images of data.train are {}x{} pixels, and were {}x{} when checkpoint {} was written",
                  now_width, now_height, width, height, checkpoint.path),
      hint);
}

// What checkpoints of older versions say about it: the number of samples, and the seed.
SplitFacts known_split(const TrainingState& saved, const SplitFacts& now) {
  if (saved.split) return *saved.split;
  SplitFacts split = now;
  split.seed = saved.seed;
  if (saved.samples > 0 && saved.samples != now.train) {
    split.train = saved.samples;
    split.evaluation = 0;
  }
  return split;
}

// Other samples would be set aside, among them some that the training has seen.
void check_split(const Checkpoint& checkpoint, const job::JobSpec& job, const SplitFacts& now) {
  if (!job.data.split) return;
  const SplitFacts was = known_split(checkpoint.state, now);
  const std::string difference = difference_of(was, now);
  if (difference.empty()) return;
  const std::string keys = keys_that_differ(was, now);
  throw Error(
      ErrorKind::config,
      fmt::format(
          "checkpoint {} was written {}: with data.split the model would be evaluated on samples that it was trained on",
          checkpoint.path, difference),
      keys.empty() ? kStartAnew : keys + " resumes the training");
}

std::string describe_ranks(const TrainingState& state) {
  const std::string ranks = plural(state.world_size, "rank");
  if (state.global_batch > 0)
    return fmt::format("{} with {} samples in each step", ranks, state.global_batch);
  return fmt::format("{} with batches of {}", ranks, state.batch_size);
}

void tell_differences(const TrainingState& saved, const TrainingState& now, const TrainingState& point,
                      std::ostream& out) {
  if (saved.samples > 0 && saved.samples != now.samples)
    out << fmt::format(
               "warning: data.train has {} samples, and had {} when the checkpoint was written: the rest of its epoch is drawn from another order",
               now.samples, saved.samples)
        << std::endl;
  for (const std::string& line : differences_of_order(saved, now)) out << line << std::endl;
  if (point.shift != saved.shift)
    out << fmt::format("the rest of the epoch is dealt anew: {} saved it, now there are {}",
                       describe_ranks(saved), describe_ranks(now))
        << std::endl;
  else if (now.global_batch > 0 && describe_ranks(now) != describe_ranks(saved))
    out << fmt::format("{} now, {} before", describe_ranks(now), describe_ranks(saved)) << std::endl;
}

void tell_other_pixels(const Checkpoint& checkpoint, const CheckpointedTraining& training) {
  const std::optional<ModelCard> saved = card_of(checkpoint);
  if (!saved) return;
  for (const std::string& line : differences_of_pixels(*saved, training.card, set_of_card(training.job),
                                                       "when the checkpoint was written"))
    training.out << line << std::endl;
}

// Returns where the training goes on. On rank 0, which has the parameters then.
TrainingState load(Checkpoint& checkpoint, const TrainingState& anew, int batches,
                   const CheckpointedTraining& training) {
  check_kind(checkpoint, anew);
  const std::string other_labels = check_classes(checkpoint, training.card.class_names);
  check_split(checkpoint, training.job, *anew.split);
  check_image_size(checkpoint, training);
  correct_powers(checkpoint, anew.decays);
  const std::string note =
      load_checkpoint(checkpoint, training.trainer.whole_program(), training.trainer.storage());
  const std::string left_out = leave_out_merged_gradients(checkpoint, anew, training.trainer.whole_program());
  const Length length = training.job.train.max_steps ? Length::steps : Length::epochs;
  TrainingState point = plan_resume(checkpoint.state, anew, batches, length, training.job.data.uneven);
  training.out << fmt::format("resuming from {}: {}", printable(checkpoint.path), describe(point))
               << std::endl;
  for (const std::string& line : {other_labels, note, left_out})
    if (!line.empty()) training.out << line << std::endl;
  tell_differences(checkpoint.state, anew, point, training.out);
  if (const std::string line = difference_of_rate(training.job, checkpoint.state, point, batches);
      !line.empty())
    training.out << line << std::endl;
  tell_other_pixels(checkpoint, training);
  return point;
}

// Sends rank 0's state to all ranks and, after a checkpoint was loaded, each rank its own part of it.
ResumedTraining share(const Checkpoint* checkpoint, const TrainingState& start, const TrainingState& anew,
                      const CheckpointedTraining& training) {
  comm::Communicator& communicator = *training.world.communicator;
  Trainer& trainer = training.trainer;
  ProgressPage& page = training.page;
  std::array<std::int64_t, 8> told = {checkpoint != nullptr ? 1 : 0,
                                      start.steps,
                                      start.epoch,
                                      start.batch,
                                      start.shift,
                                      page.first_own_checkpoint,
                                      checkpoint != nullptr ? place_in_training(checkpoint->state) : 0,
                                      static_cast<std::int64_t>(page.checkpoint_folder.load())};
  communicator.broadcast({told.data(), told.size(), DType::i64}, 0);
  page.first_own_checkpoint = told[5];  // this rank may become rank 0
  page.checkpoint_folder = static_cast<std::uint64_t>(told[7]);
  TrainingState state = anew;
  if (told[0] == 0) return {state};
  page.saved_steps = told[1];
  page.saved_place = told[6];
  share_owned(checkpoint, trainer.whole_program(), trainer.storage(), communicator);
  state.merged.batches =
      share_merged_gradients(checkpoint, trainer.whole_program(), trainer.storage(), communicator);
  const std::string note =
      share_rank_states(checkpoint, trainer.whole_program(), trainer.storage(), communicator);
  if (!note.empty()) training.out << note << std::endl;
  equalise_velocities(trainer.whole_program(), told[1], trainer.storage(), communicator);
  state.steps = told[1];
  state.epoch = static_cast<int>(told[2]);
  state.batch = static_cast<int>(told[3]);
  state.shift = told[4];
  state.best = start.best;
  state.improvement = start.improvement;
  trainer.start_at(state.steps, state.merged.batches);
  return {state, told[6]};
}

// Of the file itself, where the path is a link to it.
std::string folder_behind(const std::string& file) {
  std::error_code problem;
  return std::filesystem::weakly_canonical(file, problem).parent_path().string();
}

bool is_older(const std::optional<Checkpoint>& found, const ProgressPage& page) {
  return (found ? place_in_training(found->state) : -1) < page.saved_place;
}

// For a rank 0 that is on another node than before. The folder there may be an old copy, or the node may see new checkpoints some seconds
// late. So it looks again for kLateView, and then throws Error(missing). If the newest checkpoint was damaged and therefore set aside, it
// returns the one before.
std::optional<Checkpoint> find_as_new_keeper(const CheckpointedTraining& training, CheckpointFolder* folder) {
  const auto latest = std::chrono::steady_clock::now() + kLateView;
  while (true) {
    const std::vector<std::string> listed = folder->list();
    std::optional<Checkpoint> found = find_checkpoint(training, folder);
    const bool is_newest_here = listed.empty() || (found && found->path == listed.front());
    if (!is_newest_here || !is_older(found, training.page)) return found;
    if (std::chrono::steady_clock::now() < latest) {
      training.page.beat();
      std::this_thread::sleep_for(kLookAgain);
      continue;
    }
    if (!found) return found;
    throw Error(
        ErrorKind::missing,
        fmt::format(
            "rank 0 is on another node now, and this node does not see the newest checkpoint of the run: the newest here is {}, "
            "and the run has saved step {}",
            found->path, training.page.saved_steps.load()),
        "put output.dir on a disk that all nodes share; a new run on the node that was lost goes on from there");
  }
}

// Rank 0 must see the checkpoints of the attempt before: on another node, and where a disk may be gone.
void require_checkpoint(const CheckpointedTraining& training, bool is_new_keeper) {
  const std::int64_t steps = training.page.saved_steps;
  if (steps < 0) return;
  if (!is_new_keeper)
    throw Error(ErrorKind::missing,
                fmt::format("{} has no checkpoint any more, and the run has saved step {}",
                            *training.job.checkpoint.dir, steps),
                "is the disk still there? A new run begins anew, or goes on where the checkpoints are");
  throw Error(
      ErrorKind::missing,
      fmt::format(
          "rank 0 is on another node now, and this node does not see the checkpoints of the run: {} has none, "
          "and the run has saved step {}",
          *training.job.checkpoint.dir, steps),
      "put output.dir on a disk that all nodes share; a new run on the node that was lost goes on from there");
}

// Somebody may have renamed the folder since the attempt before, or rank 0 is on another node, and another run has filled the folder that is
// there now.
void require_same_folder(const CheckpointedTraining& training, const CheckpointFolder& folder) {
  ProgressPage& page = training.page;
  const std::uint64_t before = page.checkpoint_folder, now = folder.identity();
  const bool is_other = before != 0 && now != 0 && before != now && !folder.is_new();
  if (is_other && !folder.list().empty())
    throw Error(
        ErrorKind::missing,
        fmt::format("{} has the checkpoints of another run, and not those of the attempt before",
                    *training.job.checkpoint.dir),
        "give the folder of this run its name back, or put output.dir on a disk that all nodes share; then "
        "type the command again");
  page.checkpoint_folder = now;
}

// Without a checkpoint. A checkpoint has all weights, so that a training which resumes needs the file no more.
void start_from_pretrained(bool has_checkpoint, const CheckpointedTraining& training) {
  if (!training.job.model.pretrained) return;
  std::int64_t resumes = has_checkpoint ? 1 : 0;
  training.world.communicator->broadcast({&resumes, 1, DType::i64}, 0);
  if (resumes != 0) return;
  for (const std::string& line : training.trainer.start_from_pretrained(training.job))
    if (training.world.env.rank == 0) training.out << line << std::endl;
}

// Only of a run that begins and takes the newest checkpoint there is. A later attempt fails if it does not see its own checkpoints
// (require_checkpoint).
void tell_of_checkpoints_elsewhere(const CheckpointedTraining& training) {
  const RankEnv& env = training.world.env;
  const job::CheckpointSpec& wanted = training.job.checkpoint;
  if (!wanted.dir || wanted.resume != "auto" || env.nodes == 1 || env.attempt > 0) return;
  const std::string warning = warn_of_checkpoints_elsewhere(*wanted.dir, env, *training.world.communicator);
  if (!warning.empty()) training.out << warning << std::endl;
}

}  // namespace

ResumedTraining resume_training(const CheckpointedTraining& training, CheckpointFolder* folder,
                                const DataSize& data) {
  ProgressPage& page = training.page;
  if (folder != nullptr) require_same_folder(training, *folder);
  if (folder != nullptr && page.first_own_checkpoint == 0) page.first_own_checkpoint = folder->next_number();
  const TrainingState anew = new_training(training.job, training.world.env, data);
  tell_of_checkpoints_elsewhere(training);
  std::optional<Checkpoint> checkpoint;
  const bool is_new_keeper = folder != nullptr && !page.keeps_checkpoints.exchange(true);
  if (training.world.env.rank == 0)
    checkpoint = is_new_keeper ? find_as_new_keeper(training, folder) : find_checkpoint(training, folder);
  if (checkpoint && folder != nullptr) folder->keep_until_next(checkpoint->path);
  const std::string& named = training.job.checkpoint.resume;
  if (folder != nullptr && named != "auto" && named != "never") folder->keep(named);
  // A restart before the first checkpoint reads it again.
  if (const auto& pretrained = training.job.model.pretrained; folder != nullptr && pretrained)
    folder->keep(folder_behind(*pretrained));
  if (folder != nullptr && !checkpoint) require_checkpoint(training, is_new_keeper);
  start_from_pretrained(checkpoint.has_value(), training);
  const TrainingState start = checkpoint ? load(*checkpoint, anew, data.batches, training) : anew;
  training.trainer.share_parameters();
  ResumedTraining resumed = share(checkpoint ? &*checkpoint : nullptr, start, anew, training);
  if (checkpoint)
    resumed.saved = {checkpoint->state.steps, fmt::format("{}/{}", checkpoint->path, kHistoryFile),
                     fmt::format("{}/{}", checkpoint->path, kModelFile)};
  if (checkpoint) resumed.best = fmt::format("{}/{}", checkpoint->path, kBestFile);
  return resumed;
}

}  // namespace fleetrun::runtime
