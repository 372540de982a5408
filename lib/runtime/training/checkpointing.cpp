#include "runtime/training/checkpointing.h"

#include <array>
#include <chrono>
#include <ostream>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "job/effective_values.h"
#include "runtime/checkpoint/requests.h"
#include "runtime/checkpoint/snapshot.h"

namespace fleetrun::runtime {
namespace {

using namespace std::chrono_literals;

constexpr auto kWaitRound = 1s;  // between two signs of life
constexpr auto kTellEvery = 10s;
constexpr auto kLongestWait = 30min;  // our largest models, at 1 MB/s
constexpr int kMostFailures = 3;      // in a row; then a training that nobody could go on with is stopped
constexpr const char* kStartAnew = "checkpoint.resume=never behind the job file starts anew";

TrainingState new_training(const job::JobSpec& job, const RankEnv& env, int samples) {
  return {.world_size = env.world_size,
          .batch_size = job.data.batch_size,
          .seed = job.train.seed,
          .model = job::value_text(job, "model.name"),
          .optimizer = job::value_text(job, "optimizer.name"),
          .samples = samples};
}

std::int64_t seconds(std::chrono::nanoseconds time) {
  return std::chrono::duration_cast<std::chrono::seconds>(time).count();
}

// What any rank was asked for, every rank is.
Requests agree_on(Requests requests, comm::Communicator& of_host) {
  std::array<std::int32_t, 2> asked = {requests.save ? 1 : 0, requests.stop ? 1 : 0};
  if (of_host.size() > 1) of_host.all_reduce({asked.data(), asked.size(), DType::i32}, comm::ReduceOp::max);
  return {asked[0] != 0, asked[1] != 0};
}

}  // namespace

Checkpoints::Checkpoints(const job::JobSpec& job, comm::World& world, Trainer& trainer, ProgressPage& page,
                         std::ostream& out, Timeline* timeline)
    : job_(job), world_(world), trainer_(trainer), page_(page), out_(out), timeline_(timeline) {
  if (!job.checkpoint.dir) return;
  listen_for_requests();
  if (timeline_ != nullptr)
    label_ =
        timeline_->add({.lane = Lane::checkpoint, .name = "snapshot", .category = "checkpoint", .value = ""});
  if (world.env.rank != 0) return;
  folder_ = std::make_unique<CheckpointFolder>(*job.checkpoint.dir, job.checkpoint.keep);
  writer_ = std::make_unique<CheckpointWriter>(*folder_, timeline_);
}

Checkpoints::~Checkpoints() = default;

TrainingState Checkpoints::resume(int batches, int samples) {
  batches_ = batches;
  samples_ = samples;
  if (folder_ && page_.first_own_checkpoint == 0) page_.first_own_checkpoint = folder_->next_number();
  const TrainingState anew = new_training(job_, world_.env, samples_);
  std::optional<Checkpoint> checkpoint;
  ResumePoint point = {.state = anew};
  if (world_.env.rank == 0) checkpoint = find(page_.first_own_checkpoint);
  if (checkpoint) {
    check_kind(*checkpoint);
    const std::string note = load_checkpoint(*checkpoint, trainer_.whole_program(), trainer_.storage());
    point =
        plan_resume(checkpoint->state, anew, batches, job_.train.max_steps ? Length::steps : Length::epochs);
    out_ << fmt::format("resuming from {}: {}", checkpoint->path, describe(point.state)) << std::endl;
    if (!note.empty()) out_ << note << std::endl;
    if (const int before = checkpoint->state.samples; before > 0 && before != samples)
      out_ << fmt::format(
                  "warning: data.train has {} samples, and had {} when the checkpoint was written: the rest "
                  "of its epoch is drawn from another order",
                  samples, before)
           << std::endl;
    if (point.repeated > 0)
      out_ << fmt::format(
                  "warning: {} ranks with batches of {} saved it; {} samples of that epoch are trained twice",
                  checkpoint->state.world_size, checkpoint->state.batch_size, point.repeated)
           << std::endl;
  }
  trainer_.share_parameters();
  TrainingState start = share(checkpoint ? &*checkpoint : nullptr, point.state);
  looked_at_ = start.steps;
  return start;
}

// Rank 0's state to everybody, and optimizer states to their owners when there is a checkpoint.
TrainingState Checkpoints::share(const Checkpoint* checkpoint, const TrainingState& start) {
  std::array<std::int64_t, 4> told = {checkpoint != nullptr ? 1 : 0, start.steps, start.epoch, start.batch};
  world_.communicator->broadcast({told.data(), told.size(), DType::i64}, 0);
  TrainingState state = new_training(job_, world_.env, samples_);
  if (told[0] == 0) return state;
  share_owned_states(checkpoint, trainer_.whole_program(), trainer_.storage(), *world_.communicator);
  state.steps = told[1];
  state.epoch = static_cast<int>(told[2]);
  state.batch = static_cast<int>(told[3]);
  trainer_.start_at(state.steps);
  return state;
}

// checkpoint.resume is about how a run begins: another attempt at it goes on from what the one before has kept.
std::optional<Checkpoint> Checkpoints::find(std::int64_t first_own) {
  const std::string& resume = job_.checkpoint.resume;
  if (resume == "auto") return folder_ ? newest_good(0) : std::nullopt;
  if (folder_)
    if (std::optional<Checkpoint> own = newest_good(first_own)) return own;
  if (resume == "never") return std::nullopt;
  return with_context("loading checkpoint.resume", [&] { return read_checkpoint(resume); });
}

// Those in front of it that cannot be used are told, and set aside so that they are not counted as kept.
std::optional<Checkpoint> Checkpoints::newest_good(std::int64_t least_number) {
  std::vector<std::string> bad;
  std::string problems;
  for (const std::string& path : folder_->list(least_number)) {
    std::optional<Checkpoint> checkpoint;
    try {
      checkpoint = read_checkpoint(path);
    } catch (const Error& problem) {
      out_ << "warning: a checkpoint cannot be used: " << problem.message() << std::endl;
      problems += "\n  " + problem.message();
      bad.push_back(path);
      continue;
    }
    for (const std::string& worse : bad)
      out_ << "warning: set aside as " << folder_->set_aside(worse) << std::endl;
    return checkpoint;
  }
  if (bad.empty()) return std::nullopt;
  throw Error(ErrorKind::data,
              fmt::format("none of the {} checkpoints in {} can be used:{}", bad.size(), *job_.checkpoint.dir,
                          problems),
              kStartAnew);
}

void Checkpoints::check_kind(const Checkpoint& checkpoint) const {
  const TrainingState ours = new_training(job_, world_.env, samples_);
  const TrainingState& theirs = checkpoint.state;
  if (theirs.model == ours.model && theirs.optimizer == ours.optimizer) return;
  throw Error(ErrorKind::data,
              fmt::format("checkpoint {} is of model {} with optimizer {}, the job has {} with {}",
                          checkpoint.path, theirs.model, theirs.optimizer, ours.model, ours.optimizer),
              kStartAnew);
}

// The last step of an epoch waits for the end of the epoch where that is kept.
bool Checkpoints::due(const TrainingState& state) const {
  const auto& [dir, every_epochs, every_steps, keep, resume] = job_.checkpoint;
  const bool came = every_steps && state.steps / *every_steps > looked_at_ / *every_steps;
  if (!came || state.steps == saved_steps_) return false;
  const bool epoch_follows =
      state.batch == batches_ && every_epochs > 0 && (state.epoch + 1) % every_epochs == 0;
  return !epoch_follows;
}

bool Checkpoints::after_step(const TrainingState& state) {
  if (!job_.checkpoint.dir) return false;
  tell_results();
  Requests mine = take_requests();
  const std::int64_t now = monotonic_ns();
  mine.save = save_requests_.is_new(mine.save, now);
  const Requests requests = agree_on(mine, *world_.communicator);
  if (requests.save) save_requests_.answered(mine.save, now);
  if (requests.stop)
    keep(state);
  else if (requests.save || due(state))
    save(state);
  looked_at_ = state.steps;
  if (requests.stop) {
    wait_for_writer();
    tell_results();
    if (last_problem_)
      throw Error(ErrorKind::io,
                  fmt::format("stopped by SIGTERM, and the checkpoint of {} could not be written: {}",
                              describe(state), *last_problem_));
  }
  return requests.stop;
}

void Checkpoints::after_epoch(const TrainingState& state, bool last) {
  if (!job_.checkpoint.dir) return;
  const int every = job_.checkpoint.every_epochs;
  if (last || (every > 0 && state.epoch % every == 0)) save(state);
  tell_results();
}

void Checkpoints::save(const TrainingState& state) {
  wait_for_writer_together();
  keep(state);
}

void Checkpoints::keep(const TrainingState& state) {
  const SpanHere span(timeline_, label_);
  const std::int64_t start = monotonic_ns();
  Snapshot snapshot =
      take_snapshot(state, trainer_.whole_program(), trainer_.storage(), *world_.communicator);
  waited_ns_ += monotonic_ns() - start;
  wait_for_writer();  // with signs of life, should an earlier save still be under way
  if (writer_) writer_->write(std::move(snapshot));
  saved_steps_ = state.steps;
}

void Checkpoints::tell_results() {
  if (!writer_) return;
  for (const SaveResult& result : writer_->take_results()) {
    failures_ = result.problem ? failures_ + 1 : 0;
    last_problem_ = result.problem ? std::optional(result.problem->message()) : std::nullopt;
    if (!result.problem)
      out_ << fmt::format("checkpoint: {} ({:.0f} ms)", result.path, result.seconds * 1e3) << std::endl;
    else if (failures_ == kMostFailures)
      throw Error(ErrorKind::io, fmt::format("{} checkpoints in a row could not be written; the last: {}",
                                             kMostFailures, *last_problem_));
    else
      out_ << fmt::format("warning: no checkpoint of {}: {}; the next one is tried as planned",
                          describe(result.state), *last_problem_)
           << std::endl;
  }
}

void Checkpoints::finish() {
  if (!job_.checkpoint.dir) return;
  wait_for_writer_together();
  tell_results();
}

// Ranks that are to end do not wait for each other: one that is gone must not cost the checkpoint.
void Checkpoints::wait_for_writer() {
  if (!writer_) return;
  const std::int64_t start = begin_to_wait();
  while (!is_written()) page_.beat();
  waited_ns_ += monotonic_ns() - start;
}

// No collective of the others lasts longer than a round, and no rank is taken for hung, however slow the disk.
void Checkpoints::wait_for_writer_together() {
  const PhaseHere here(page_, Phase::saving);
  const std::int64_t start = begin_to_wait();
  for (std::int32_t written = 0; written == 0;) {
    written = !writer_ || is_written() ? 1 : 0;
    if (world_.env.world_size > 1) world_.communicator->broadcast({&written, 1, DType::i32}, 0);
    page_.beat();
  }
  waited_ns_ += monotonic_ns() - start;
}

std::int64_t Checkpoints::begin_to_wait() { return wait_start_ns_ = told_ns_ = monotonic_ns(); }

// Waits for a round at most, and says so when there were many.
bool Checkpoints::is_written() {
  if (writer_->wait_until_idle(kWaitRound)) return true;
  const std::int64_t now = monotonic_ns();
  const auto waited = std::chrono::nanoseconds(now - wait_start_ns_);
  if (waited > kLongestWait)
    throw Error(ErrorKind::io,
                fmt::format("the checkpoint before is being written for {} s; {} takes no more",
                            seconds(waited), *job_.checkpoint.dir));
  if (now - told_ns_ < std::chrono::nanoseconds(kTellEvery).count()) return false;
  told_ns_ = now;
  out_ << fmt::format("waiting for the disk: a checkpoint is being written for {} s", seconds(waited))
       << std::endl;
  return false;
}

}  // namespace fleetrun::runtime
