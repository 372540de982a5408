#include "runtime/training/judge_scores.h"

#include <array>
#include <filesystem>
#include <ostream>

#include <fmt/format.h>

#include "base/error/error.h"
#include "base/text/printable.h"
#include "runtime/training/ranks/agree_on_data.h"
#include "runtime/training/save/best_weights.h"
#include "runtime/training/save/output_folder.h"
#include "runtime/training/scored_weights.h"

namespace fleetrun::runtime {
namespace {

// An evaluation at the end of an epoch counts as one at the beginning of the next epoch, because a training that resumes there evaluates
// the epoch again.
std::int64_t place_of_evaluation(const Progress& progress) {
  TrainingState state = progress.state;
  if (state.batch < progress.steps_per_epoch) return place_in_training(state);
  state.epoch = progress.epochs_done();
  state.batch = 0;
  state.shift = 0;
  return place_in_training(state);
}

ScoredEpoch last_score(const Run& run, job::Metric metric) {
  const TestScore& test = *run.scores.test;
  return {.metric = metric,
          .value = value_of(metric, test.score),
          .epoch = test.epochs - 1,
          .steps = test.steps,
          .data_set = run.scores.test_set,
          .place = place_of_evaluation(run.progress)};
}

// Whether this run's scores in this metric can be compared with the score.
bool is_comparable(const Run& run, const ScoredEpoch& score, job::Metric metric) {
  return score.metric == metric && are_of_same_data(score, {.data_set = run.scores.test_set});
}

const char* evaluated_key(const Run& run) { return run.job.data.split ? "data.split" : "data.test"; }

void tell_lost_best(const Run& run, const ScoredEpoch& best, job::Metric metric) {
  if (best.metric != metric)
    run.out << fmt::format(
        "checkpoint.keep_best is {}, and the best epoch so far is by {}: only later epochs count\n",
        name_of(metric), name_of(best.metric));
  else if (!is_comparable(run, best, metric))
    run.out << fmt::format(
        "{} has other samples, or images of another size, than when the checkpoint was written: only later epochs count as the best\n",
        evaluated_key(run));
  else
    run.out << fmt::format(
        "warning: neither the checkpoint nor {} has the weights of the best epoch so far ({} of epoch {}): only later epochs count\n",
        printable(best_path(run.job.output)), describe(best), best.epoch);
  run.out << std::flush;
}

// A restart before the first checkpoint reads model.pretrained again. The name counts, because a checkpoint has the same file under another name,
// which stays.
void require_not_set_aside(const std::string& pretrained, const Run& run) {
  std::error_code problem;
  const auto path = std::filesystem::canonical(pretrained, problem);
  if (problem || path != std::filesystem::canonical(best_path(run.job.output), problem)) return;
  throw Error(ErrorKind::config,
              fmt::format("model.pretrained is {}, which checkpoint.keep_best renames when a training begins",
                          pretrained),
              "give model.pretrained a copy, or output.dir=FOLDER after the job file chooses another folder");
}

// The best weights that the checkpoint knows of. An older fleetrun has not put them into it. Closed if nothing has them.
UniqueFd find_best(const Run& run, const ScoredEpoch& best) {
  for (const std::string& path : {run.checkpoints.loaded_best(), best_path(run.job.output)})
    if (UniqueFd file = open_best(path, best, run.out)) return file;
  return {};
}

// Afterwards the state has a best epoch only if best.safetensors has its weights.
void take_over_best(Run& run, job::Metric metric) {
  std::optional<ScoredEpoch>& best = run.progress.state.best;
  const job::OutputSpec& output = run.job.output;
  require_own_best(output);
  UniqueFd weights;
  if (best && is_comparable(run, *best, metric)) weights = find_best(run, *best);
  if (weights) {
    restore_best(output, weights, run.out);
  } else {
    if (best) tell_lost_best(run, *best, metric);
    best.reset();
    if (run.job.model.pretrained) require_not_set_aside(*run.job.model.pretrained, run);
    set_best_aside(output, run.out);
  }
  run.checkpoints.set_best(std::move(weights));
}

// The count of another metric, or of other samples, says nothing.
void take_over_improvement(Run& run, const job::EarlyStoppingSpec& stopping) {
  Improvement& improvement = run.progress.state.improvement;
  if (!improvement.best || is_comparable(run, *improvement.best, stopping.metric)) return;
  if (improvement.best->metric != stopping.metric)
    run.out << fmt::format(
        "train.early_stopping.metric is {}, and was {} when the checkpoint was written: the count starts anew",
        name_of(stopping.metric), name_of(improvement.best->metric));
  else
    run.out << fmt::format(
        "{} has other samples, or images of another size, than when the checkpoint was written: the count of train.early_stopping starts anew",
        evaluated_key(run));
  run.out << std::endl;
  improvement = {};
}

void keep_best(Run& run, const ScoredEpoch& score) {
  const PlainTensors weights = collect_scored_weights(run);
  if (!run.is_first_rank()) return;
  write_for_people(run, [&] {
    try {
      const job::OutputSpec output = find_output(run.job.output, run.output);
      run.checkpoints.set_best(save_best(output, weights, to_metadata(run.card), score, run.out));
      run.progress.state.best = score;
    } catch (const Error& problem) {
      run.out << fmt::format("warning: the weights of epoch {}, the best so far, are not saved: {}",
                             score.epoch, printable(problem.message()))
              << std::endl;
    }
  });
}

// No step follows: the training is as long as the steps that it has done, so Progress::finished() is true.
void end_early(Run& run) {
  Progress& progress = run.progress;
  progress.ended_early = true;
  progress.total_steps = progress.state.steps;
  run.page.steps = static_cast<std::uint64_t>(progress.total_steps);
  run.page.epochs = static_cast<std::uint32_t>(progress.epochs_begun());
}

}  // namespace

void begin_judging(Run& run) {
  const std::optional<job::Metric>& metric = run.job.checkpoint.keep_best;
  const std::optional<job::EarlyStoppingSpec>& stopping = run.job.train.early_stopping;
  TrainingState& state = run.progress.state;
  if (!stopping) state.improvement = {};
  if ((metric || stopping) && run.is_first_rank() && run.data.test)
    run.scores.test_set = digest_of(*run.data.test);
  if (metric && run.is_first_rank()) take_over_best(run, *metric);
  if (!stopping) return;
  std::int32_t ended = 0;
  if (run.is_first_rank()) {
    take_over_improvement(run, *stopping);
    ended = has_ended(state.improvement, *stopping) ? 1 : 0;
  }
  run.world.communicator->broadcast({&ended, 1, DType::i32}, 0);
  if (ended != 0 && !run.progress.finished()) end_early(run);
}

void judge_score(Run& run) {
  const std::optional<job::Metric>& metric = run.job.checkpoint.keep_best;
  const std::optional<job::EarlyStoppingSpec>& stopping = run.job.train.early_stopping;
  if (!metric && !stopping) return;
  TrainingState& state = run.progress.state;
  std::array<std::int32_t, 2> verdict{};  // is the best, ends the training
  if (run.is_first_rank()) {
    verdict[0] = metric && is_better(last_score(run, *metric), state.best) ? 1 : 0;
    if (stopping) count(state.improvement, last_score(run, stopping->metric), stopping->min_delta);
    verdict[1] = stopping && has_ended(state.improvement, *stopping) ? 1 : 0;
  }
  book(run, TimeUse::communication, [&] {
    run.world.communicator->broadcast({verdict.data(), verdict.size(), DType::i32}, 0);
  });
  if (verdict[0] != 0) book(run, TimeUse::checkpoint, [&] { keep_best(run, last_score(run, *metric)); });
  if (verdict[1] != 0 && !run.progress.finished()) end_early(run);
}

}  // namespace fleetrun::runtime
