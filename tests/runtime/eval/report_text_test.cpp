#include "runtime/eval/report_text.h"

#include <doctest/doctest.h>

#include "sample_report.h"

namespace fleetrun::runtime::report_text_test {
namespace {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_CASE("people read the report in tables") {
  CHECK(describe(sample_report()) == R"(model: out/model.safetensors
data: photos/test, 5 images of 3 classes

accuracy 0.8000, loss 0.75000

class          precision  recall      f1  images
cat               1.0000  0.6667  0.8000       3
a <b>, "c"        0.6667  1.0000  0.8000       2
mean              0.8333  0.8333  0.8000       5
weighted mean     0.8667  0.8000  0.8000       5
left out: 1 class without images and without predictions

confusion matrix: a row for each label, a column for each predicted class
                  0   1
   0 cat          2   1
   1 a <b>, "c"   .   2

the 5 images with the highest loss
    loss  label       predicted   probability  image
  3.0000  cat         a <b>, "c"       0.9375  cat/2,5.jpg
  0.5000  a <b>, "c"  a <b>, "c"       0.6250  b/3.jpg
  0.5000  a <b>, "c"  a <b>, "c"       0.6250  b/4.jpg
  0.2500  cat         cat              0.7500  cat/0.jpg
  0.1250  cat         cat              0.8750  cat/1.jpg
)");
}

TEST_CASE("the terminal has no confusion matrix of more than 20 classes") {
  std::vector<Prediction> predictions;
  for (std::int32_t i = 0; i < 21; ++i) predictions.push_back({.sample = i, .label = i, .predicted = i});
  const std::vector<std::string> names(21, "x");
  EvalReport report = make_report({.model = "m", .data = "d", .classes = numbered_classes(21)}, {.acc5 = 0.5},
                                  predictions, names);
  CHECK_FALSE(contains(describe(report), "confusion"));
  CHECK(contains(describe(report), ", among the best five 0.5000, loss "));
  predictions.pop_back();
  report =
      make_report({.model = "m", .data = "d", .classes = numbered_classes(21)}, {}, predictions, {20, "x"});
  CHECK(contains(describe(report), "confusion matrix"));
}

}  // namespace
}  // namespace fleetrun::runtime::report_text_test
