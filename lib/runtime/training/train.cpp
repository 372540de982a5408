#include "runtime/training/train.h"

#include <algorithm>
#include <ostream>

#include <fmt/format.h>

#include "runtime/training/evaluate.h"
#include "runtime/training/judge_scores.h"
#include "runtime/training/profile_steps.h"
#include "runtime/training/train_step.h"

namespace fleetrun::runtime {
namespace {

int planned_epochs(const Progress& progress) {
  const std::int64_t left = std::max<std::int64_t>(0, progress.total_steps - progress.state.steps);
  const std::int64_t batches = progress.state.batch + left;
  return progress.state.epoch +
         static_cast<int>((batches + progress.steps_per_epoch - 1) / progress.steps_per_epoch);
}

void begin(Run& run) {
  run.progress.total_epochs = planned_epochs(run.progress);
  run.page.epochs = static_cast<std::uint32_t>(run.progress.total_epochs);
  run.page.steps = static_cast<std::uint64_t>(run.progress.total_steps);
  run.page.step = static_cast<std::uint64_t>(run.progress.state.steps);
  const std::int64_t place = run.checkpoints.saved_place();
  if (!run.observers.time.begin(run.world.env.attempt, place, monotonic_ns()))
    run.page.first_step = run.page.step.load();
}

void evaluate_and_judge(Run& run, int epoch) {
  evaluate(run, epoch);
  if (!run.progress.stopped) judge_score(run);
}

std::string why_complete(const Run& run) {
  if (run.progress.ended_early) return "early stopping ended it";
  return fmt::format("the checkpoint has {} steps, and the job ends after {}", run.progress.state.steps,
                     run.progress.total_steps);
}

// No step is left: the checkpoint has as many steps as the job asks for or more, or early stopping had ended the training.
void finish_without_steps(Run& run) {
  run.out << "the training is already complete: " << why_complete(run) << std::endl;
  if (run.loaders.test && run.job.train.eval_every > 0)
    evaluate_and_judge(run, run.progress.epochs_begun() - 1);
}

bool evaluation_is_due(const Run& run) {
  const int every = run.job.train.eval_every;
  return run.loaders.test && every > 0 &&
         ((run.progress.state.epoch + 1) % every == 0 || run.progress.finished());
}

// Whether the next step ends a group. num_iteration_per_run steps form a group. train_step() fetches the loss and logs it only in the last
// step of a group, if that is due, and checkpoints are saved only after a group. The last group of an epoch, and of the training, may be
// shorter.
bool ends_group(const Run& run) {
  const Progress& progress = run.progress;
  const int steps = run.job.strategy.execution_strategy.num_iteration_per_run;
  return (progress.state.batch + 1) % steps == 0 || progress.state.batch + 1 == progress.steps_per_epoch ||
         progress.state.steps + 1 == progress.total_steps;
}

void train_epoch(Run& run) {
  Progress& progress = run.progress;
  run.page.phase = Phase::training;
  run.page.epoch = static_cast<std::uint32_t>(progress.state.epoch);
  run.loaders.train.start_epoch(
      {.epoch = progress.state.epoch, .batch = progress.state.batch, .shift = progress.state.shift});
  const std::int64_t start = monotonic_ns();
  while (!progress.finished() && !progress.stopped) {
    run.observers.trace.before_step(progress.state.steps + 1, run.observers.spans_of_step);
    const Batch* const batch = next_batch(run, run.loaders.train);
    if (batch == nullptr) break;
    const bool group_ends = ends_group(run);
    train_step(run, *batch, group_ends);  // counts it in progress
    if (group_ends)
      book_checkpointing(run, [&](Checkpointing& checkpoints) {
        progress.stopped = checkpoints.after_step(progress.state, progress.finished());
      });
    write_for_people(run, [&] { run.observers.trace.after_step(progress.state.steps); });
    profile_step(run);
  }
  progress.train_seconds += static_cast<double>(monotonic_ns() - start) / 1e9;
}

void end_epoch(Run& run) {
  TrainingState& state = run.progress.state;
  if (state.batch == run.progress.steps_per_epoch) {
    ++state.epoch;
    state.batch = 0;
    state.shift = 0;
  }
  book_checkpointing(
      run, [&](Checkpointing& checkpoints) { checkpoints.after_epoch(state, run.progress.finished()); });
}

}  // namespace

void train(Run& run) {
  const Progress& progress = run.progress;
  begin(run);
  if (progress.finished()) finish_without_steps(run);
  while (!progress.finished() && !progress.stopped) {
    train_epoch(run);
    if (!progress.stopped && evaluation_is_due(run)) evaluate_and_judge(run, progress.state.epoch);
    if (progress.finished() || progress.stopped)
      fetch_last_step(run);  // unless that step has fetched its loss
    if (!progress.stopped) end_epoch(run);
  }
  write_for_people(run, [&] { run.observers.trace.finish(progress.state.steps); });
}

}  // namespace fleetrun::runtime
