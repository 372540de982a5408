#include "runtime/eval/report_files.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "runtime/eval/confusion_svg.h"
#include "sample_report.h"

namespace fleetrun::runtime::report_files_test {
namespace {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_CASE("the confusion matrix as CSV has all classes, also those without images") {
  CHECK(confusion_csv(sample_report()) ==
        "label,cat,\"a <b>, \"\"c\"\"\",elk\n"
        "cat,2,1,0\n"
        "\"a <b>, \"\"c\"\"\",0,2,0\n"
        "elk,0,0,0\n");
}

TEST_CASE("the predictions as CSV") {
  CHECK(predictions_csv(sample_report()) ==
        "sample,image,label,predicted,probability,loss\n"
        "0,cat/0.jpg,cat,cat,0.75,0.25\n"
        "1,cat/1.jpg,cat,cat,0.875,0.125\n"
        "2,\"cat/2,5.jpg\",cat,\"a <b>, \"\"c\"\"\",0.9375,3\n"
        "3,b/3.jpg,\"a <b>, \"\"c\"\"\",\"a <b>, \"\"c\"\"\",0.625,0.5\n"
        "4,b/4.jpg,\"a <b>, \"\"c\"\"\",\"a <b>, \"\"c\"\"\",0.625,0.5\n");
}

TEST_CASE("the report as JSON") {
  const auto json = nlohmann::json::parse(to_json(as_json(sample_report())));
  CHECK(json["written_by"] == "fleetrun eval");
  CHECK(json["accuracy"] == 0.8);
  CHECK(json["loss"] == 0.75);
  CHECK(json["images"] == 5);
  CHECK(json["classes"].size() == 2);
  CHECK(json["classes"][1]["name"] == "a <b>, \"c\"");
  CHECK(json["classes"][1]["images"] == 2);
  CHECK(json["confusion_matrix"] == nlohmann::json::parse("[[2, 1, 0], [0, 2, 0], [0, 0, 0]]"));
  CHECK(json["worst"][0]["image"] == "cat/2,5.jpg");
  CHECK(json["worst"][0]["label"] == "cat");
}

TEST_CASE("the picture has the counts and the names as text, both colour schemes, and no script") {
  const std::string svg = confusion_svg(sample_report());
  CHECK(contains(svg, ">a &lt;b&gt;, &quot;c&quot;</text>"));
  CHECK(contains(svg, "prefers-color-scheme:dark"));
  CHECK(contains(svg, "<title>Confusion matrix: accuracy 0.8000, 5 images, 3 classes</title>"));
  CHECK_FALSE(contains(svg, "<script"));
  CHECK_FALSE(contains(svg, "<b>"));
  std::size_t cells = 0;
  for (std::size_t at = svg.find("fill-opacity"); at != std::string::npos;
       at = svg.find("fill-opacity", at + 1))
    ++cells;
  CHECK(cells == 3);
}

TEST_CASE("the picture of many classes stays small, and has no numbers in its cells") {
  constexpr std::int32_t kClasses = 1000;
  std::vector<Prediction> predictions;
  for (std::int32_t i = 0; i < 100 * kClasses; ++i)
    predictions.push_back({.sample = i, .label = i % kClasses, .predicted = i / 100});
  const std::string svg =
      confusion_svg(make_report({.model = "m", .data = "d", .classes = numbered_classes(kClasses)}, {},
                                predictions, {predictions.size(), ""}));
  CHECK(svg.size() < (3 << 20));
  CHECK_FALSE(contains(svg, "font-size=\"0"));
}

TEST_CASE("the files of a report") {
  const std::vector<NamedContent> files = files_of(sample_report());
  CHECK(files.front().content.starts_with("{\n  \"written_by\": \"fleetrun eval\""));
  std::vector<std::string> names;
  for (const NamedContent& file : files) names.push_back(file.name);
  CHECK(names == std::vector<std::string>{"report.json", "report.txt", "predictions.csv", "confusion.csv",
                                          "confusion.svg"});
}

}  // namespace
}  // namespace fleetrun::runtime::report_files_test
