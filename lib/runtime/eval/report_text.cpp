#include "runtime/eval/report_text.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/text/plural.h"
#include "base/text/printable.h"

namespace fleetrun::runtime {
namespace {

constexpr std::size_t kMostShownClasses = 20;  // of a confusion matrix
constexpr std::size_t kLongestName = 32;       // bytes of a class name in a table

std::string shown_class(const EvalReport& report, std::int32_t label) {
  return printable_start(report.subject.classes.at(static_cast<std::size_t>(label)), kLongestName);
}

// In characters, as fmt counts them.
std::size_t width_of(const std::string& text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char byte) {
    return (static_cast<unsigned char>(byte) & 0xC0U) != 0x80U;
  }));
}

std::size_t widest_class(const EvalReport& report, std::size_t least) {
  for (const ClassQuality& one : report.by_class)
    least = std::max(least, width_of(shown_class(report, one.label)));
  return least;
}

std::string heading(const EvalReport& report) {
  const Score& score = report.score;
  const std::size_t classes = report.subject.classes.size();
  const std::string top5 = score.acc5 ? fmt::format(", among the best five {:.4f}", *score.acc5) : "";
  const std::string skipped =
      report.subject.skipped > 0 ? fmt::format(", {} skipped", plural(report.subject.skipped, "sample")) : "";
  return fmt::format("model: {}\ndata: {}, {} of {}{}\n\naccuracy {:.4f}{}, loss {:.5f}\n",
                     printable(report.subject.model), printable(report.subject.data),
                     plural(score.samples, "image"), plural(classes, "class", "es"), skipped, score.acc1,
                     top5, score.loss);
}

std::string quality_row(const std::string& name, std::size_t width, const Quality& quality,
                        std::int64_t images) {
  return fmt::format("{:{}}  {:9.4f}  {:6.4f}  {:6.4f}  {:6}\n", name, width, quality.precision,
                     quality.recall, quality.f1, images);
}

std::string class_table(const EvalReport& report) {
  const std::size_t width = widest_class(report, std::string_view("weighted mean").size());
  std::string text = fmt::format("\n{:{}}  precision  recall      f1  images\n", "class", width);
  for (const ClassQuality& one : report.by_class)
    text += quality_row(shown_class(report, one.label), width, one.quality, one.images);
  text += quality_row("mean", width, report.macro_mean, report.score.samples);
  text += quality_row("weighted mean", width, report.weighted_mean, report.score.samples);
  const std::size_t absent = report.subject.classes.size() - report.by_class.size();
  if (absent > 0)
    text +=
        fmt::format("left out: {} without images and without predictions\n", plural(absent, "class", "es"));
  return text;
}

std::int64_t images_of(const EvalReport& report, std::int32_t label, std::int32_t predicted) {
  const auto found = report.confusion.find({label, predicted});
  return found == report.confusion.end() ? 0 : found->second;
}

// Columns have numbers, because the names would not fit.
std::string confusion_table(const EvalReport& report) {
  if (report.by_class.size() > kMostShownClasses) return "";
  std::int64_t most = 0;
  for (const auto& [pair, count] : report.confusion) most = std::max(most, count);
  const std::size_t digits = std::max<std::size_t>(3, std::to_string(most).size());
  const std::size_t width = widest_class(report, 0);
  std::string text = "\nconfusion matrix: a row for each label, a column for each predicted class\n";
  text += std::string(width + 5, ' ');
  for (const ClassQuality& column : report.by_class) text += fmt::format(" {:{}}", column.label, digits);
  for (const ClassQuality& row : report.by_class) {
    text += fmt::format("\n{:4} {:{}}", row.label, shown_class(report, row.label), width);
    for (const ClassQuality& column : report.by_class) {
      const std::int64_t count = images_of(report, row.label, column.label);
      text += count == 0 ? fmt::format(" {:>{}}", ".", digits) : fmt::format(" {:{}}", count, digits);
    }
  }
  return text + "\n";
}

std::string worst_table(const EvalReport& report) {
  std::size_t width = 5;
  for (const std::size_t place : report.worst) {
    const Prediction& one = report.predictions[place];
    width = std::max(
        {width, width_of(shown_class(report, one.label)), width_of(shown_class(report, one.predicted))});
  }
  std::string text = fmt::format(
      "\nthe {} with the highest loss\n    loss  {:{}}  {:{}}  probability  image\n",
      plural(report.worst.size(), "image"), "label", width, "predicted", std::max<std::size_t>(width, 9));
  for (const std::size_t place : report.worst) {
    const Prediction& one = report.predictions[place];
    text += fmt::format("{:8.4f}  {:{}}  {:{}}  {:11.4f}  {}\n", one.loss, shown_class(report, one.label),
                        width, shown_class(report, one.predicted), std::max<std::size_t>(width, 9),
                        one.probability, printable(report.names[place]));
  }
  return text;
}

}  // namespace

std::string describe(const EvalReport& report) {
  return heading(report) + class_table(report) + confusion_table(report) + worst_table(report);
}

}  // namespace fleetrun::runtime
