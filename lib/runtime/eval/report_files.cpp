#include "runtime/eval/report_files.h"

#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "base/text/csv.h"
#include "base/text/printable.h"
#include "runtime/eval/confusion_svg.h"
#include "runtime/eval/report_text.h"

namespace fleetrun::runtime {
namespace {

const std::string& name_of_class(const EvalReport& report, std::int32_t label) {
  return report.subject.classes.at(static_cast<std::size_t>(label));
}

// The counts of one label, by predicted class.
std::vector<std::int64_t> row_of(const EvalReport& report, std::int32_t label) {
  std::vector<std::int64_t> row(report.subject.classes.size());
  const auto end = report.confusion.lower_bound({label + 1, 0});
  for (auto cell = report.confusion.lower_bound({label, 0}); cell != end; ++cell)
    row.at(static_cast<std::size_t>(cell->first.second)) = cell->second;
  return row;
}

void add(JsonValue& object, const Quality& quality) {
  object.add("precision", quality.precision);
  object.add("recall", quality.recall);
  object.add("f1", quality.f1);
}

JsonValue classes_as_json(const EvalReport& report) {
  std::vector<JsonValue> items;
  for (const ClassQuality& one : report.by_class) {
    JsonValue item =
        JsonValue::object({{"label", one.label}, {"name", valid_utf8(name_of_class(report, one.label))}});
    add(item, one.quality);
    item.add("images", one.images);
    item.add("predicted", one.predicted);
    items.push_back(std::move(item));
  }
  return JsonValue::list(std::move(items));
}

JsonValue mean_as_json(const Quality& quality) {
  JsonValue object = JsonValue::object();
  add(object, quality);
  return object;
}

JsonValue matrix_as_json(const EvalReport& report) {
  const auto classes = static_cast<std::int32_t>(report.subject.classes.size());
  std::vector<JsonValue> rows;
  for (std::int32_t label = 0; label < classes; ++label) rows.emplace_back(row_of(report, label));
  return JsonValue::list(std::move(rows));
}

JsonValue worst_as_json(const EvalReport& report) {
  std::vector<JsonValue> items;
  for (const std::size_t place : report.worst) {
    const Prediction& one = report.predictions[place];
    items.push_back(JsonValue::object({{"image", valid_utf8(report.names[place])},
                                       {"sample", one.sample},
                                       {"label", valid_utf8(name_of_class(report, one.label))},
                                       {"predicted", valid_utf8(name_of_class(report, one.predicted))},
                                       {"probability", static_cast<double>(one.probability)},
                                       {"loss", static_cast<double>(one.loss)}}));
  }
  return JsonValue::list(std::move(items));
}

}  // namespace

JsonValue as_json(const EvalReport& report) {
  JsonValue json = JsonValue::object({{"written_by", "fleetrun eval"},
                                      {"model", valid_utf8(report.subject.model)},
                                      {"data", valid_utf8(report.subject.data)},
                                      {"images", report.score.samples},
                                      {"accuracy", report.score.acc1},
                                      {"accuracy_of_best_5", report.score.acc5},
                                      {"loss", report.score.loss},
                                      {"mean", mean_as_json(report.macro_mean)},
                                      {"weighted_mean", mean_as_json(report.weighted_mean)},
                                      {"classes", classes_as_json(report)},
                                      {"worst", worst_as_json(report)}});
  if (report.subject.skipped > 0) json.add("skipped_samples", report.subject.skipped);
  if (report.subject.classes.size() <= kMostClassesOfMatrix)
    json.add("confusion_matrix", matrix_as_json(report));
  return json;
}

std::string confusion_csv(const EvalReport& report) {
  std::string text = "label";
  for (const std::string& name : report.subject.classes) text += "," + csv_field(name);
  text += "\n";
  for (std::size_t label = 0; label < report.subject.classes.size(); ++label) {
    text += csv_field(report.subject.classes[label]);
    for (const std::int64_t count : row_of(report, static_cast<std::int32_t>(label)))
      fmt::format_to(std::back_inserter(text), ",{}", count);
    text += "\n";
  }
  return text;
}

std::string predictions_csv(const EvalReport& report) {
  std::string text = "sample,image,label,predicted,probability,loss\n";
  for (std::size_t i = 0; i < report.predictions.size(); ++i) {
    const Prediction& one = report.predictions[i];
    fmt::format_to(std::back_inserter(text), "{},{},{},{},{},{}\n", one.sample, csv_field(report.names[i]),
                   csv_field(name_of_class(report, one.label)),
                   csv_field(name_of_class(report, one.predicted)), one.probability, one.loss);
  }
  return text;
}

std::vector<NamedContent> files_of(const EvalReport& report) {
  std::vector<NamedContent> files = {{"report.json", to_json_lines(as_json(report))},
                                     {"report.txt", describe(report)},
                                     {"predictions.csv", predictions_csv(report)}};
  if (report.subject.classes.size() > kMostClassesOfMatrix) return files;
  files.push_back({"confusion.csv", confusion_csv(report)});
  files.push_back({"confusion.svg", confusion_svg(report)});
  return files;
}

}  // namespace fleetrun::runtime
