#include "runtime/eval/eval_report.h"

#include <algorithm>
#include <numeric>

namespace fleetrun::runtime {
namespace {

constexpr std::size_t kWorst = 20;

double ratio(std::int64_t part, std::int64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

Quality judge(std::int64_t hits, std::int64_t images, std::int64_t predicted) {
  // 2 * precision * recall / (precision + recall), with one division, as scikit-learn has it.
  return {.precision = ratio(hits, predicted),
          .recall = ratio(hits, images),
          .f1 = ratio(2 * hits, images + predicted)};
}

template <typename WeightOf>
Quality weighted(const std::vector<ClassQuality>& classes, const WeightOf& weight_of) {
  Quality sums;
  double weights = 0;
  for (const ClassQuality& one : classes) {
    const double weight = weight_of(one);
    sums.precision += weight * one.quality.precision;
    sums.recall += weight * one.quality.recall;
    sums.f1 += weight * one.quality.f1;
    weights += weight;
  }
  if (weights == 0) return {};
  return {sums.precision / weights, sums.recall / weights, sums.f1 / weights};
}

}  // namespace

EvalReport make_report(EvalSubject subject, const Score& score, std::vector<Prediction> predictions,
                       std::vector<std::string> names) {
  EvalReport report = {.subject = std::move(subject), .score = score};
  report.confusion = count_confusion(predictions);
  report.by_class = judge_classes(report.confusion, static_cast<std::int32_t>(report.subject.classes.size()));
  report.macro_mean = macro_mean(report.by_class);
  report.weighted_mean = weighted_mean(report.by_class);
  report.worst = find_worst(predictions, kWorst);
  report.predictions = std::move(predictions);
  report.names = std::move(names);
  return report;
}

Confusion count_confusion(const std::vector<Prediction>& predictions) {
  Confusion confusion;
  for (const Prediction& one : predictions) ++confusion[{one.label, one.predicted}];
  return confusion;
}

std::vector<ClassQuality> judge_classes(const Confusion& confusion, std::int32_t classes) {
  std::vector<std::int64_t> hits(static_cast<std::size_t>(classes)), images(hits), predicted(hits);
  for (const auto& [pair, count] : confusion) {
    const auto label = static_cast<std::size_t>(pair.first), guess = static_cast<std::size_t>(pair.second);
    images.at(label) += count;
    predicted.at(guess) += count;
    if (label == guess) hits.at(label) += count;
  }
  std::vector<ClassQuality> judged;
  for (std::size_t i = 0; i < hits.size(); ++i)
    if (images[i] + predicted[i] > 0)
      judged.push_back({.label = static_cast<std::int32_t>(i),
                        .quality = judge(hits[i], images[i], predicted[i]),
                        .images = images[i],
                        .predicted = predicted[i]});
  return judged;
}

Quality macro_mean(const std::vector<ClassQuality>& classes) {
  return weighted(classes, [](const ClassQuality&) { return 1.0; });
}

Quality weighted_mean(const std::vector<ClassQuality>& classes) {
  return weighted(classes, [](const ClassQuality& one) { return static_cast<double>(one.images); });
}

std::vector<std::size_t> find_worst(const std::vector<Prediction>& predictions, std::size_t count) {
  std::vector<std::size_t> places(predictions.size());
  std::iota(places.begin(), places.end(), std::size_t{0});
  const auto end = places.begin() + static_cast<std::ptrdiff_t>(std::min(count, places.size()));
  std::partial_sort(places.begin(), end, places.end(), [&](std::size_t a, std::size_t b) {
    const float loss_of_a = predictions[a].loss, loss_of_b = predictions[b].loss;
    return loss_of_a != loss_of_b ? loss_of_a > loss_of_b : a < b;
  });
  places.erase(end, places.end());
  return places;
}

std::vector<std::string> numbered_classes(std::int32_t classes) {
  std::vector<std::string> names;
  names.reserve(static_cast<std::size_t>(classes));
  for (std::int32_t i = 0; i < classes; ++i) names.push_back(std::to_string(i));
  return names;
}

}  // namespace fleetrun::runtime
