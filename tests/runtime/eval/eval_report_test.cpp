#include "runtime/eval/eval_report.h"

#include <doctest/doctest.h>

namespace fleetrun::runtime::eval_report_test {
namespace {

// By (label, predicted). The losses fall from sample to sample.
std::vector<Prediction> predictions_of(const std::vector<std::pair<int, int>>& pairs) {
  std::vector<Prediction> predictions;
  for (const auto& [label, predicted] : pairs)
    predictions.push_back({.sample = static_cast<std::int32_t>(predictions.size()),
                           .label = label,
                           .predicted = predicted,
                           .loss = 1.0F / static_cast<float>(predictions.size() + 1)});
  return predictions;
}

TEST_CASE("precision, recall and F1 of each class, and their means") {
  // The example of scikit-learn's classification_report: y_true = [0, 1, 2, 2, 2], y_pred = [0, 0, 2, 2, 1].
  const Confusion confusion = count_confusion(predictions_of({{0, 0}, {1, 0}, {2, 2}, {2, 2}, {2, 1}}));
  const std::vector<ClassQuality> classes = judge_classes(confusion, 3);
  REQUIRE(classes.size() == 3);
  CHECK(classes[0].quality.precision == 0.5);
  CHECK(classes[0].quality.recall == 1);
  CHECK(classes[0].quality.f1 == doctest::Approx(2.0 / 3));
  CHECK(classes[1].quality.precision == 0);
  CHECK(classes[1].quality.recall == 0);
  CHECK(classes[1].quality.f1 == 0);
  CHECK(classes[2].quality.precision == 1);
  CHECK(classes[2].quality.recall == doctest::Approx(2.0 / 3));
  CHECK(classes[2].quality.f1 == doctest::Approx(0.8));
  CHECK(classes[2].images == 3);
  CHECK(classes[2].predicted == 2);

  const Quality macro = macro_mean(classes), weighted = weighted_mean(classes);
  CHECK(macro.precision == doctest::Approx(0.5));
  CHECK(macro.recall == doctest::Approx(5.0 / 9));
  CHECK(macro.f1 == doctest::Approx((2.0 / 3 + 0.8) / 3));
  CHECK(weighted.precision == doctest::Approx(0.7));
  CHECK(weighted.recall == doctest::Approx(0.6));
  CHECK(weighted.f1 == doctest::Approx((2.0 / 3 + 3 * 0.8) / 5));
}

TEST_CASE("a class counts in the means if it has images or predictions") {
  const Confusion confusion = count_confusion(predictions_of({{0, 0}, {0, 3}}));
  const std::vector<ClassQuality> classes = judge_classes(confusion, 5);
  REQUIRE(classes.size() == 2);
  CHECK(classes[1].label == 3);
  CHECK(classes[1].images == 0);
  CHECK(macro_mean(classes).recall == 0.25);
  CHECK(weighted_mean(classes).recall == 0.5);
  CHECK(macro_mean({}).f1 == 0);
}

TEST_CASE("the worst predictions have the highest losses, and of equal ones the first comes first") {
  std::vector<Prediction> predictions = predictions_of({{0, 0}, {0, 0}, {0, 0}, {0, 0}});
  predictions[0].loss = 0.1F;
  predictions[1].loss = 2;
  predictions[2].loss = 7;
  predictions[3].loss = 2;
  CHECK(find_worst(predictions, 3) == std::vector<std::size_t>{2, 1, 3});
  CHECK(find_worst(predictions, 20) == std::vector<std::size_t>{2, 1, 3, 0});
  CHECK(find_worst({}, 20).empty());
}

TEST_CASE("a report has all of it") {
  const EvalReport report = make_report({.model = "m", .data = "d", .classes = {"cat", "dog"}},
                                        {.samples = 2}, predictions_of({{0, 0}, {1, 0}}), {"a.jpg", "b.jpg"});
  CHECK(report.by_class.size() == 2);
  CHECK(report.macro_mean.recall == 0.5);
  CHECK(report.weighted_mean.recall == 0.5);
  CHECK(report.confusion == Confusion{{{0, 0}, 1}, {{1, 0}, 1}});
  CHECK(report.worst == std::vector<std::size_t>{0, 1});
  CHECK(report.names[1] == "b.jpg");
}

}  // namespace
}  // namespace fleetrun::runtime::eval_report_test
