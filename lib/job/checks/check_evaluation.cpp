#include "job/checks/check_evaluation.h"

#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "base/text/plural.h"
#include "job/keys/job_keys.h"
#include "job/spec/data_set_facts.h"

namespace fleetrun::job {
namespace {

constexpr const char* kKeepBest = "checkpoint.keep_best";
constexpr const char* kEarlyStopping = "train.early_stopping";
constexpr const char* kMetric = "train.early_stopping.metric";
constexpr const char* kMinDelta = "train.early_stopping.min_delta";
constexpr int kTopFive = 5;

// `path` needs evaluations.
void check_evaluations(const std::string& path, const std::string& found, Draft& draft) {
  if (!evaluated_set(draft.spec.data) && !draft.has_problem("data.test") && !draft.has_problem("data.split"))
    draft.report(path,
                 found + " without data.test, wanted data.test or data.split: its samples give the score");
  else if (draft.spec.train.eval_every == 0)
    draft.report(path, found + " beside train.eval_every 0, wanted train.eval_every of at least 1");
}

// The top 5 of 5 classes are all classes.
void check_top_five(const std::string& path, Metric metric, Draft& draft) {
  const std::optional<int> classes =
      draft.spec.model.class_dim ? draft.spec.model.class_dim : known_classes(draft.spec.data.train);
  if (metric != Metric::acc5 || !classes || *classes > kTopFive) return;
  draft.report(path, fmt::format("\"acc5\", wanted \"acc1\" or \"loss\": with {} acc5 is always 1",
                                 plural(*classes, "class", "es")));
}

// Most people who write 1 or more mean per cent.
void check_min_delta(const EarlyStoppingSpec& stopping, Draft& draft) {
  if (stopping.metric == Metric::loss || stopping.min_delta < 1) return;
  draft.report(kMinDelta, fmt::format("{}, wanted less than 1: {} is a number from 0 to 1",
                                      stopping.min_delta, value_text(draft.spec, kMetric)));
}

void note_long_patience(const EarlyStoppingSpec& stopping, Draft& draft) {
  const TrainSpec& train = draft.spec.train;
  if (!train.epochs || train.eval_every == 0) return;
  const int evaluations = *train.epochs == 0 ? 0 : (*train.epochs - 1) / train.eval_every + 1;
  if (evaluations > stopping.patience + 1) return;
  draft.notes.push_back(
      fmt::format("train.early_stopping has no effect: patience is {}, and the training has only {}",
                  stopping.patience, plural(evaluations, "evaluation")));
}

}  // namespace

void check_evaluation(Draft& draft) {
  if (const std::optional<Metric> metric = draft.spec.checkpoint.keep_best) {
    check_evaluations(kKeepBest, '"' + value_text(draft.spec, kKeepBest) + '"', draft);
    check_top_five(kKeepBest, *metric, draft);
  }
  if (!draft.has(kEarlyStopping) || draft.has_problem(kEarlyStopping)) return;
  const EarlyStoppingSpec& stopping = *draft.spec.train.early_stopping;
  check_evaluations(kEarlyStopping, "it", draft);
  check_top_five(kMetric, stopping.metric, draft);
  check_min_delta(stopping, draft);
  note_long_patience(stopping, draft);
}

}  // namespace fleetrun::job
