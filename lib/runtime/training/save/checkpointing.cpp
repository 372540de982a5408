#include "runtime/training/save/checkpointing.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <array>
#include <chrono>
#include <filesystem>
#include <limits>
#include <ostream>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "base/error/error.h"
#include "base/text/printable.h"
#include "runtime/checkpoint/requests.h"
#include "runtime/checkpoint/snapshot.h"

namespace fleetrun::runtime {
namespace {

using namespace std::chrono_literals;

constexpr auto kWaitRound = 1s;  // between two signs of life
constexpr auto kTellEvery = 10s;
constexpr auto kClaimWait = 120s;  // a file server forgets the lock of a lost node sooner, NFS 4 after 90 s
constexpr int kMostFailures = 3;   // in a row; then a training that nobody could go on with is stopped
constexpr int kKeepAll = std::numeric_limits<int>::max();  // no run removes what another one was stopped with

Saves saves_of(const CheckpointedTraining& training) {
  if (training.job.checkpoint.dir) return Saves::planned;
  return training.world.env.stop_dir.empty() ? Saves::none : Saves::at_stop;
}

std::int64_t seconds(std::chrono::nanoseconds time) {
  return std::chrono::duration_cast<std::chrono::seconds>(time).count();
}

struct News {
  Requests requests;
  std::int64_t written_steps = -1;  // as SaveResults::written_steps
};

// A request to one rank counts for all ranks. Every rank learns of a complete checkpoint, because each of them may become rank 0.
News tell_all(const News& mine, comm::Communicator& all_ranks) {
  std::array<std::int64_t, 3> told = {mine.requests.save ? 1 : 0, mine.requests.stop ? 1 : 0,
                                      mine.written_steps};
  if (all_ranks.size() > 1) all_ranks.all_reduce({told.data(), told.size(), DType::i64}, comm::ReduceOp::max);
  return {.requests = {told[0] != 0, told[1] != 0}, .written_steps = told[2]};
}

}  // namespace

Checkpointing::Checkpointing(const CheckpointedTraining& training, Timeline* timeline)
    : training_(training), saves_(saves_of(training)), timeline_(timeline) {
  if (saves_ == Saves::none) return;
  if (timeline_ != nullptr)
    snapshot_ =
        timeline_->add({.lane = Lane::checkpoint, .name = "snapshot", .category = "checkpoint", .value = ""});
  if (saves_ != Saves::planned) return;
  listen_for_save_requests();
  open_folder(*training.job.checkpoint.dir, training.job.checkpoint.keep);
}

void Checkpointing::open_folder(const std::string& path, int keep) {
  if (training_.world.env.rank != 0) return;
  const std::int64_t began = monotonic_ns();
  folder_ = std::make_unique<CheckpointFolder>(path, keep, [&] { return waits_for_claim(path, began); });
  writer_ = std::make_unique<CheckpointWriter>(*folder_, timeline_);
}

// In the log folder, whatever that is called by now.
std::string Checkpointing::stop_folder() const {
  const std::filesystem::path planned = training_.world.env.stop_dir;
  return training_.world.log_dir() / planned.filename();
}

// After a restart, rank 0 of the attempt before may have been lost with its node, and its lock is still there.
bool Checkpointing::waits_for_claim(const std::string& path, std::int64_t began_ns) {
  const auto waited = std::chrono::nanoseconds(monotonic_ns() - began_ns);
  if (training_.world.env.attempt == 0 || waited > kClaimWait) return false;
  if (waited < kWaitRound)
    training_.out
        << fmt::format(
               "waiting up to {} s for {}: rank 0 of the attempt before, or another run, has locked it",
               seconds(kClaimWait), printable(path))
        << std::endl;
  training_.page.beat();
  std::this_thread::sleep_for(kWaitRound);
  return true;
}

Checkpointing::~Checkpointing() = default;

TrainingState Checkpointing::resume(const DataSize& data) {
  batches_ = data.batches;
  training_.page.load_began_ns = monotonic_ns();
  const ResumedTraining resumed = resume_training(training_, folder_.get(), data);
  results_.saved_place = resumed.saved_place;
  loaded_ = resumed.saved;
  loaded_best_ = resumed.best;
  if (!loaded_best_.empty())
    set_best(UniqueFd(::open(loaded_best_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)));
  training_.page.load_ended_ns = monotonic_ns();
  last_seen_step_ = resumed.state.steps;
  if (saves_ != Saves::none) listen_for_stop_requests();
  return resumed.state;
}

// A checkpoint that is due at the last step of an epoch is left to after_epoch(), if that saves. After the last epoch it always does.
bool Checkpointing::due(const TrainingState& state, bool last) const {
  if (saves_ != Saves::planned) return false;
  const job::CheckpointSpec& wanted = training_.job.checkpoint;
  const std::optional<int>& every_steps = wanted.every_steps;
  const bool came = every_steps && state.steps / *every_steps > last_seen_step_ / *every_steps;
  if (last || !came || state.steps == results_.saved_steps) return false;
  const bool epoch_follows =
      state.batch == batches_ && wanted.every_epochs > 0 && (state.epoch + 1) % wanted.every_epochs == 0;
  return !epoch_follows;
}

bool Checkpointing::after_step(const TrainingState& state, bool last) {
  if (saves_ == Saves::none) return false;
  tell_results(last);
  Requests mine = take_requests();
  const std::int64_t now = monotonic_ns();
  mine.save = save_requests_.is_new(mine.save, now);
  const auto [requests, written_steps] =
      tell_all({mine, results_.written_steps}, *training_.world.communicator);
  if (written_steps >= 0) {
    training_.page.saved_steps = written_steps;
    if (written_steps == results_.saved_steps) training_.page.saved_place = results_.saved_place;
    training_.page.has_own_checkpoint = true;
  }
  if (requests.save) save_requests_.answered(mine.save, now);
  if (requests.stop && saves_ == Saves::at_stop) open_folder(stop_folder(), kKeepAll);
  if (requests.stop)
    begin_to_write(state);
  else if (requests.save || due(state, last))
    save(state);
  last_seen_step_ = state.steps;
  if (requests.stop) {
    wait_for_writer();
    tell_results(true);
    // Rank 0 has told whether it is complete. The others, which may be on other nodes, take that for granted, but not in the log folder.
    if (saves_ == Saves::planned && !writer_) training_.page.has_own_checkpoint = true;
    if (results_.last_problem)
      throw Error(ErrorKind::io, fmt::format("stopped, and the checkpoint of {} could not be written: {}",
                                             describe(state), *results_.last_problem));
  }
  return requests.stop;
}

void Checkpointing::after_epoch(const TrainingState& state, bool last) {
  if (saves_ != Saves::planned) return;
  const int every = training_.job.checkpoint.every_epochs;
  if (last || (every > 0 && state.epoch % every == 0)) save(state);
  tell_results(last);
}

void Checkpointing::save(const TrainingState& state) {
  wait_for_writer_together();
  begin_to_write(state);
}

void Checkpointing::begin_to_write(const TrainingState& state) {
  const SpanHere span(timeline_, snapshot_);
  const std::int64_t start = monotonic_ns();
  const TrainedWeightsHere weights(training_.trainer);
  Snapshot snapshot = take_snapshot(state, training_.trainer.whole_program(), training_.trainer.storage(),
                                    *training_.world.communicator);
  ModelCard card = training_.card;
  card.lacks_averages = training_.job.optimizer.ema_evaluate;
  snapshot.about_model = to_metadata(card);
  snapshot.history = history_now();
  snapshot.best = best_;
  wait_.total_ns += monotonic_ns() - start;
  wait_for_writer();  // with signs of life, should an earlier save still be under way
  if (writer_) writer_->write(std::move(snapshot));
  results_.saved_steps = state.steps;
  results_.saved_place = place_in_training(state);
}

void Checkpointing::save_history_of(int file) {
  if (file >= 0) history_.reset(::fcntl(file, F_DUPFD_CLOEXEC, 0));
}

void Checkpointing::set_best(UniqueFd weights) {
  best_ = weights ? std::make_shared<const UniqueFd>(std::move(weights)) : nullptr;
}

// By its descriptor: somebody may have renamed the log folder, and another run may have made a new one.
HistoryFile Checkpointing::history_now() const {
  struct stat facts {};
  if (!history_ || ::fstat(history_.get(), &facts) != 0) return {};
  return {fmt::format("/proc/self/fd/{}", history_.get()), static_cast<std::size_t>(facts.st_size)};
}

// A training that is over has more to save than checkpoints, so it is not stopped.
void Checkpointing::tell_results(bool is_over) {
  if (!writer_) return;
  for (const SaveResult& result : writer_->take_results()) {
    results_.failures = result.problem ? results_.failures + 1 : 0;
    results_.last_problem = result.problem ? std::optional(result.problem->message()) : std::nullopt;
    if (!result.problem) results_.last_path = result.path;
    if (!result.problem) results_.written_steps = result.state.steps;
    if (!result.problem) training_.page.has_own_checkpoint = true;
    if (!result.problem)
      training_.out << fmt::format("checkpoint: {} ({:.0f} ms)", printable(result.path), result.seconds * 1e3)
                    << std::endl;
    else if (results_.failures >= kMostFailures && !is_over)
      throw Error(ErrorKind::io, fmt::format("{} checkpoints in a row could not be written; the last: {}",
                                             kMostFailures, *results_.last_problem));
    else
      training_.out << fmt::format("warning: no checkpoint of {}: {}{}", describe(result.state),
                                   printable(*results_.last_problem),
                                   is_over ? "" : "; the next one is tried as planned")
                    << std::endl;
  }
}

void Checkpointing::finish() {
  if (saves_ != Saves::planned) return;
  wait_for_writer_together();
  tell_results(true);
}

// Ranks that are to end do not wait for each other: one that is gone must not cost the checkpoint.
void Checkpointing::wait_for_writer() {
  if (!writer_) return;
  const std::int64_t start = begin_to_wait();
  while (!is_written()) training_.page.beat();
  wait_.total_ns += monotonic_ns() - start;
}

// No collective of the others lasts longer than a round, and no rank is taken for hung, however slow the disk.
void Checkpointing::wait_for_writer_together() {
  const PhaseHere here(training_.page, Phase::saving);
  const std::int64_t start = begin_to_wait();
  for (std::int32_t written = 0; written == 0;) {
    written = !writer_ || is_written() ? 1 : 0;
    if (training_.world.env.world_size > 1)
      training_.world.communicator->broadcast({&written, 1, DType::i32}, 0);
    training_.page.beat();
  }
  wait_.total_ns += monotonic_ns() - start;
}

std::int64_t Checkpointing::begin_to_wait() { return wait_.start_ns = wait_.told_ns = monotonic_ns(); }

// Waits for a round at most, and says so when there were many.
bool Checkpointing::is_written() {
  if (writer_->wait_until_idle(kWaitRound)) return true;
  const std::int64_t now = monotonic_ns();
  const auto waited = std::chrono::nanoseconds(now - wait_.start_ns);
  if (waited > kLongestSave)
    throw Error(ErrorKind::io,
                fmt::format("the checkpoint before is being written for {} s; {} takes no more",
                            seconds(waited), folder_->path()));
  if (now - wait_.told_ns < std::chrono::nanoseconds(kTellEvery).count()) return false;
  wait_.told_ns = now;
  training_.out << fmt::format("waiting for the disk: a checkpoint is being written for {} s",
                               seconds(waited))
                << std::endl;
  return false;
}

}  // namespace fleetrun::runtime
