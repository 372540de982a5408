// A training in progress on one rank: what run_job() has set up, the progress, and the observers.
#pragma once
#include <cstdint>
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>

#include "base/run/progress_page.h"
#include "base/run/timeline.h"
#include "base/system/unique_fd.h"
#include "comm/make_communicator.h"
#include "job/spec/job_spec.h"
#include "job/spec/settle_pipeline.h"
#include "runtime/checkpoint/model_card.h"
#include "runtime/observe/history.h"
#include "runtime/observe/profile.h"
#include "runtime/observe/score.h"
#include "runtime/observe/time_book.h"
#include "runtime/observe/trace.h"
#include "runtime/observe/training_events.h"
#include "runtime/training/save/checkpointing.h"
#include "runtime/training/setup/data_sets.h"
#include "runtime/training/trainer/trainer.h"

namespace fleetrun::runtime {

// Equal on every rank, except for the seconds. A step is one batch on each rank, or on all ranks of a pipeline.
struct Progress {
  TrainingState state;
  std::int64_t first_step = 0;  // first step of this process
  std::int64_t total_steps = 0;
  int total_epochs = 0;  // that total_steps take; the last one may be shorter
  int steps_per_epoch = 0;
  double train_seconds = 0;  // seconds of this process in training epochs, without evaluations
  bool stopped = false;      // by SIGTERM or SIGINT; the checkpoint is complete
  bool ended_early = false;  // by train.early_stopping

  bool finished() const { return state.steps >= total_steps; }
  int epochs_done() const { return state.epoch + (state.batch == steps_per_epoch ? 1 : 0); }
  int epochs_begun() const { return state.epoch + (state.batch > 0 ? 1 : 0); }
};

struct TestScore {
  Score score;
  int epochs = 0;          // epochs begun before the evaluation
  std::int64_t steps = 0;  // steps done before the evaluation
};

// The scores fetched last, and what to do at the end of the present group of steps (train.cpp).
struct Scores {
  Score train;                    // of this rank's batch
  std::int64_t train_steps = -1;  // steps done with that batch's; -1: nothing is fetched yet
  std::optional<TestScore> test;  // of the last evaluation
  std::optional<float> scale;     // of the loss, where strategy.amp moves it
  std::string test_set;           // digest of data.test on rank 0, if scores are judged
  bool fetch_is_due = true;       // true at first, because a log line needs a loss
  bool log_is_due = false;
};

// The steps that train.profile asks for, and the sums at their beginning and end.
struct ProfiledSteps {
  ProfileMark begin, end;
  int steps = 0;
};

// What watches the training. It outlives trainer and loaders, which write to the timeline.
struct Observers {
  TimeBook time;
  Trace trace;
  Timeline::Label wait = 0, evaluation = 0;  // used only with a trace
  std::size_t spans_of_step = 0;             // spans per step for which the trace reserves room
  std::unique_ptr<TrainingEvents> events;    // of rank 0, with output.tensorboard
  std::unique_ptr<TrainingHistory> history;  // of rank 0, when a launcher started it
  std::int64_t step_ns = 0;                  // time spent in steps so far
  ProfiledSteps profile;
};

struct Run {
  const job::JobSpec& job;  // with its strategy settled
  comm::World& world;
  ProgressPage& page;
  std::ostream& out;
  const DataSets& data;
  Trainer& trainer;
  Loaders& loaders;
  Checkpointing& checkpoints;
  Observers& observers;
  const ModelCard& card;
  const UniqueFd& output;  // rank 0's claim on output.dir
  Progress progress;
  Scores scores = {};

  bool is_first_rank() const { return world.env.rank == 0; }
  bool is_alone() const { return world.env.world_size == 1; }
  int replicas() const { return job::replicas_of(job, world.env.world_size); }
};

// Does the work, and books its time as `use`.
template <typename Work>
auto book(Run& run, TimeUse use, const Work& work) {
  const Booking booking(run.observers.time, use);
  return work();
}

// Writes files for the user. The disk may be slow, so the phase is `saving` meanwhile.
template <typename Work>
void write_for_people(Run& run, const Work& work) {
  const PhaseHere here(run.page, Phase::saving);
  work();
}

// Calls `work` on the checkpoints. Books snapshots and waits for the disk as checkpoint. Books the rest as
// communication: the ranks tell each other whether somebody asked for a checkpoint.
template <typename Work>
void book_checkpointing(Run& run, const Work& work) {
  TimeBook& time = run.observers.time;
  Checkpointing& checkpoints = run.checkpoints;
  const std::int64_t waited = checkpoints.waited_ns();
  const std::int64_t saved = checkpoints.saved_steps();
  const std::int64_t start = monotonic_ns();
  work(checkpoints);
  const std::int64_t took = monotonic_ns() - start;
  const std::int64_t for_checkpoint = checkpoints.waited_ns() - waited;
  time.add(TimeUse::checkpoint, for_checkpoint);
  time.add(TimeUse::communication, took - for_checkpoint);
  if (checkpoints.saved_steps() != saved) time.keep(checkpoints.saved_place(), monotonic_ns());
  time.publish(monotonic_ns());
}

// The next batch of an epoch; null after the last one. Gives signs of life while it waits.
const Batch* next_batch(Run& run, Loader& loader);

// Prints a warning for each sample that the loader skipped since the last call.
void print_skipped(Run& run, Loader& loader);

// Throws Error(numerics): "`what` is nan at step 12, and so is conv1.weight". The first step is step 1. `under_way`: steps that the
// progress does not count yet.
[[noreturn]] void stop_without_numbers(const Run& run, const std::string& what, double value,
                                       int under_way = 0);

}  // namespace fleetrun::runtime
