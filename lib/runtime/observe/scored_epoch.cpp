#include "runtime/observe/scored_epoch.h"

#include <cmath>

#include <fmt/format.h>

#include "base/text/plural.h"

namespace fleetrun::runtime {

namespace {

// The steps of a place change with the number of ranks.
bool is_repetition(const Improvement& so_far, const ScoredEpoch& now) {
  if (so_far.place == 0) return now.steps == so_far.steps;
  return now.place == so_far.place;
}

}  // namespace

bool are_of_same_data(const ScoredEpoch& one, const ScoredEpoch& other) {
  return one.data_set.empty() || other.data_set.empty() || one.data_set == other.data_set;
}

std::string_view name_of(job::Metric metric) {
  switch (metric) {
    case job::Metric::acc1:
      return "acc1";
    case job::Metric::acc5:
      return "acc5";
    case job::Metric::loss:
      break;
  }
  return "loss";
}

double value_of(job::Metric metric, const Score& score) {
  switch (metric) {
    case job::Metric::acc1:
      return score.acc1;
    case job::Metric::acc5:
      return score.acc5.value_or(1);  // all labels are among the five
    case job::Metric::loss:
      break;
  }
  return score.loss;
}

bool is_better(const ScoredEpoch& epoch, const std::optional<ScoredEpoch>& than, double min_delta) {
  if (!std::isfinite(epoch.value)) return false;
  if (!than) return true;
  return epoch.metric == job::Metric::loss ? epoch.value < than->value - min_delta
                                           : epoch.value > than->value + min_delta;
}

JsonValue as_json(const ScoredEpoch& epoch) {
  JsonValue json = JsonValue::object({{"metric", std::string(name_of(epoch.metric))},
                                      {"value", epoch.value},
                                      {"epoch", epoch.epoch},
                                      {"steps", epoch.steps}});
  if (!epoch.data_set.empty()) json.add("data_set", epoch.data_set);
  if (epoch.place > 0) json.add("place", epoch.place);
  return json;
}

std::optional<ScoredEpoch> read_scored_epoch(const JsonValue& json) {
  using Kind = JsonValue::Kind;
  const JsonMember* const value = json.find("value");
  const JsonValue* const metric = json.find("metric", Kind::text);
  const JsonValue* const epoch = json.find("epoch", Kind::integer);
  const JsonValue* const steps = json.find("steps", Kind::integer);
  const JsonValue* const data_set = json.find("data_set", Kind::text);  // older ones have not all of these
  const JsonValue* const place = json.find("place", Kind::integer);
  if (value == nullptr || metric == nullptr || epoch == nullptr || steps == nullptr) return std::nullopt;
  if (!value->value.is(Kind::number) && !value->value.is(Kind::integer)) return std::nullopt;
  for (const job::Metric known : {job::Metric::loss, job::Metric::acc1, job::Metric::acc5})
    if (metric->text == name_of(known))
      return ScoredEpoch{.metric = known,
                         .value = value->value.number,
                         .epoch = static_cast<int>(epoch->integer),
                         .steps = steps->integer,
                         .data_set = data_set == nullptr ? "" : data_set->text,
                         .place = place == nullptr ? 0 : place->integer};
  return std::nullopt;
}

std::string describe(const ScoredEpoch& epoch) {
  return fmt::format("{} {:.5f}", name_of(epoch.metric), epoch.value);
}

void count(Improvement& so_far, const ScoredEpoch& now, double min_delta) {
  if (is_repetition(so_far, now)) return;
  so_far.epoch = now.epoch;
  so_far.steps = now.steps;
  so_far.place = now.place;
  ++so_far.evaluations;
  if (!is_better(now, so_far.best, min_delta)) return;
  so_far.best = now;
  so_far.evaluations = 0;
}

bool has_ended(const Improvement& so_far, const job::EarlyStoppingSpec& stopping) {
  return so_far.evaluations >= stopping.patience;
}

std::string describe(const Improvement& so_far, const job::EarlyStoppingSpec& stopping) {
  const std::string by = stopping.min_delta > 0 ? fmt::format(" by {}", stopping.min_delta) : "";
  const std::string best =
      so_far.best ? fmt::format("best epoch {}", so_far.best->epoch) : "no epoch had a finite score";
  return fmt::format("stopped after epoch {}: {} did not improve{} in {}; {}", so_far.epoch,
                     name_of(stopping.metric), by, plural(so_far.evaluations, "evaluation"), best);
}

}  // namespace fleetrun::runtime
