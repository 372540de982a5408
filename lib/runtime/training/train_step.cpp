#include "runtime/training/train_step.h"

#include <algorithm>
#include <cmath>
#include <ostream>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "job/spec/schedule.h"
#include "runtime/observe/lines.h"
#include "runtime/training/ranks/replicas.h"

namespace fleetrun::runtime {
namespace {

double seconds_of(std::int64_t nanoseconds) { return static_cast<double>(nanoseconds) / 1e9; }

double learning_rate(const Run& run) {
  const Progress& progress = run.progress;
  const TrainingState& state = progress.state;
  const std::int64_t place = std::int64_t{state.epoch} * progress.steps_per_epoch + state.batch;
  return job::learning_rate_at(run.job.optimizer.learning_rate, {state.steps, place},
                               progress.steps_per_epoch, progress.total_steps);
}

// Returns the seconds that the step took.
double timed_step(Run& run, const Batch& batch, double rate) {
  const std::int64_t communicated = run.trainer.communication_ns();
  const std::int64_t start = monotonic_ns();
  run.trainer.step(view_of(batch), rate);
  const std::int64_t took = monotonic_ns() - start;
  const std::int64_t communication = std::min(took, run.trainer.communication_ns() - communicated);
  run.observers.step_ns += took;
  run.observers.time.add(TimeUse::communication, communication);
  run.observers.time.add(TimeUse::compute, took - communication);
  run.page.communication_share = seconds_of(communication) / seconds_of(took);
  return seconds_of(took);
}

void print_loss_scale(Run& run) {
  const std::optional<float> scale = run.trainer.loss_scale();
  if (run.is_first_rank() && run.scores.scale && scale != run.scores.scale)
    run.out << fmt::format("the loss scale is {} after step {}, was {}", *scale, run.progress.state.steps + 1,
                           *run.scores.scale)
            << std::endl;
  run.scores.scale = scale;
}

// With strategy.pipeline, the last stage of the first replica has the loss.
std::string describe_loss(const Run& run) {
  const int stages = run.trainer.stages();
  return fmt::format("the loss of rank {}", stages > 1 ? stages - 1 : run.world.env.rank);
}

void fetch(Run& run) {
  run.scores.train = run.trainer.score();
  run.scores.train_steps = run.progress.state.steps + 1;
  run.page.loss = run.scores.train.loss;
  if (!std::isfinite(run.scores.train.loss))
    stop_without_numbers(run, describe_loss(run), run.scores.train.loss, 1);
  print_loss_scale(run);
}

// For TensorBoard and log/history.csv.
void record_step(Run& run, double speed, double rate) {
  const Observers& observers = run.observers;
  if (!observers.events && !observers.history) return;
  const Score& score = run.scores.train;
  const std::int64_t step = run.progress.state.steps + 1;
  const double batches = static_cast<double>(samples_in_step(run.progress.state)) / run.loaders.train.batch();
  const double ranks = batches * run.world.env.world_size / run.replicas();  // `speed` is that of one replica
  std::vector<Scalar> scalars = {{"train/loss", score.loss},
                                 {"train/acc1", score.acc1},
                                 {"train/learning_rate", rate},
                                 {"train/images_per_second", speed * ranks},
                                 {"train/communication_share", run.page.communication_share}};
  if (score.acc5) scalars.push_back({"train/acc5", *score.acc5});
  if (run.scores.scale) scalars.push_back({"train/loss_scale", *run.scores.scale});
  write_for_people(run, [&] {
    if (observers.events) observers.events->add(step, scalars);
    if (observers.history) observers.history->add(step, run.progress.state.epoch, scalars);
  });
}

void print_step(Run& run, double speed) {
  const TrainingState& state = run.progress.state;
  if (run.job.train.print_format == job::PrintFormat::worker)
    run.out << worker_line(run.world.env.rank, state.steps, run.scores.train.loss, speed) << std::endl;
  else
    run.out << epoch_line(state.epoch, state.batch, run.scores.train) << std::endl;
}

// What falls due inside a group of steps waits for the end of the group.
void fetch_and_log(Run& run, bool group_ends, double speed, double rate) {
  const Progress& progress = run.progress;
  Scores& scores = run.scores;
  scores.log_is_due |= progress.state.batch % run.job.train.log_every == 0;
  scores.fetch_is_due |= scores.log_is_due || progress.state.steps % run.job.train.fetch_every == 0 ||
                         progress.state.steps + 1 == progress.total_steps;
  if (!group_ends) return;
  if (std::exchange(scores.fetch_is_due, false)) book(run, TimeUse::compute, [&] { fetch(run); });
  if (!std::exchange(scores.log_is_due, false)) return;
  record_step(run, speed, rate);
  print_step(run, speed);
}

void advance(Run& run, double speed) {
  ++run.progress.state.steps;
  ++run.progress.state.batch;
  MergedGradients& merged = run.progress.state.merged;
  merged.batches = (merged.batches + 1) % merged.k_steps;
  run.page.step = static_cast<std::uint64_t>(run.progress.state.steps);
  run.page.images_per_second = speed;
  run.page.beat();
  if (run.page.first_step_ns == 0) run.page.first_step_ns = run.page.heartbeat_ns.load();
}

void compare_weights(Run& run) {
  const int every = run.job.train.check_weights_every;
  const std::int64_t steps = run.progress.state.steps;
  if (every <= 0 || steps % every != 0 || run.is_alone() || run.job.strategy.pipeline) return;
  book(run, TimeUse::communication,
       [&] { check_replicas(run.trainer.fingerprint(), steps, *run.world.communicator); });
}

}  // namespace

void train_step(Run& run, const Batch& batch, bool group_ends) {
  const double rate = learning_rate(run);
  // Of the work on its samples, this rank does a part: one stage of a pipeline.
  const double part = run.replicas() / static_cast<double>(run.world.env.world_size);
  const double speed = run.loaders.train.batch() * part / timed_step(run, batch, rate);
  fetch_and_log(run, group_ends, speed, rate);
  print_skipped(run, run.loaders.train);
  advance(run, speed);
  compare_weights(run);
}

void fetch_last_step(Run& run) {
  const Progress& progress = run.progress;
  Scores& scores = run.scores;
  if (progress.state.steps == progress.first_step || scores.train_steps == progress.state.steps) return;
  if (progress.stopped && run.trainer.stages() > 1) return;
  const Score score = book(run, TimeUse::compute, [&] { return run.trainer.score(); });
  if (!progress.stopped && !std::isfinite(score.loss))
    stop_without_numbers(run, describe_loss(run), score.loss);
  scores.train = score;
  scores.train_steps = progress.state.steps;
  run.page.loss = score.loss;
}

}  // namespace fleetrun::runtime
