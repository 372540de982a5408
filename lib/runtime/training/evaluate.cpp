#include "runtime/training/evaluate.h"

#include <cmath>
#include <ostream>

#include <fmt/format.h>

#include "runtime/checkpoint/weights.h"
#include "runtime/observe/lines.h"
#include "runtime/training/trainer/numerics.h"

namespace fleetrun::runtime {
namespace {

// Adds up the scores of all batches. False: the ranks were asked to stop.
bool score_batches(Run& run) {
  Loader& loader = *run.loaders.test;
  loader.start_epoch(0);
  while (const Batch* batch = next_batch(run, loader)) {
    book(run, TimeUse::compute, [&] { run.trainer.evaluate(view_of(*batch)); });
    print_skipped(run, loader);
    run.page.beat();
    book_checkpointing(run, [&](Checkpointing& checkpoints) {
      run.progress.stopped = checkpoints.after_step(run.progress.state, run.progress.finished());
    });
    if (run.progress.stopped) return false;
  }
  return true;
}

// A training whose weights are good goes on, even if the model scores a test sample beyond what f32 holds.
void judge_infinite_loss(Run& run, double loss) {
  const Program& program = run.trainer.executor().program();  // with the weights that this rank has
  const PlainTensors weights = read_tensors(weights_of(program), program, run.trainer.storage());
  if (!first_not_finite(weights).empty()) stop_without_numbers(run, "the loss of the test samples", loss);
  run.out
      << fmt::format(
             "warning: the loss of the test samples is {}; all weights are finite, and the training goes on",
             describe_number(loss))
      << std::endl;
}

void record_evaluation(Run& run, int epoch, const Score& score) {
  const Observers& observers = run.observers;
  const std::int64_t steps = run.progress.state.steps;
  std::vector<Scalar> scalars = {{"test/loss", score.loss}, {"test/acc1", score.acc1}};
  if (score.acc5) scalars.push_back({"test/acc5", *score.acc5});
  write_for_people(run, [&] {
    if (observers.events) observers.events->add(steps, scalars);
    if (observers.history) observers.history->add(steps, epoch, scalars);
  });
}

}  // namespace

void evaluate(Run& run, int epoch) {
  run.page.phase = Phase::evaluating;
  const SpanHere span(run.observers.trace.timeline(), run.observers.evaluation);
  book(run, TimeUse::communication, [&] { run.trainer.begin_evaluation(); });
  if (!score_batches(run)) return;
  const Score score = book(run, TimeUse::communication, [&] { return run.trainer.finish_evaluation(); });
  require_samples(score, run.data.test->size());
  run.scores.test = {score, epoch + 1, run.progress.state.steps};
  run.out << test_line(epoch, score) << std::endl;
  if (!std::isfinite(score.loss)) judge_infinite_loss(run, score.loss);
  record_evaluation(run, epoch, score);
}

}  // namespace fleetrun::runtime
