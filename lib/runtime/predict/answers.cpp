#include "runtime/predict/answers.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "base/json/json_value.h"
#include "base/text/csv.h"
#include "base/text/printable.h"

namespace fleetrun::runtime {
namespace {

constexpr std::size_t kWidestName = 40;  // columns; longer names shift their line

// As few digits as give the same number again.
std::string digits(float probability) { return fmt::format("{}", probability); }

}  // namespace

std::vector<Guess> best_guesses(std::span<const float> logits, int top) {
  std::vector<std::int32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  const std::size_t count = std::min(static_cast<std::size_t>(top), order.size());
  const auto logit = [&](std::int32_t label) { return logits[static_cast<std::size_t>(label)]; };
  std::partial_sort(
      order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count), order.end(),
      [&](std::int32_t a, std::int32_t b) { return logit(a) != logit(b) ? logit(a) > logit(b) : a < b; });
  const double greatest = *std::ranges::max_element(logits);
  double sum = 0;
  for (const float value : logits) sum += std::exp(value - greatest);
  std::vector<Guess> guesses;
  for (std::size_t i = 0; i < count; ++i)
    guesses.push_back({order[i], static_cast<float>(std::exp(logit(order[i]) - greatest) / sum)});
  return guesses;
}

AnswerWriter::AnswerWriter(PredictFormat format, std::vector<std::string> class_names)
    : format_(format), class_names_(std::move(class_names)) {
  for (const std::string& name : class_names_) width_ = std::max(width_, name.size());
  width_ = std::min(width_, kWidestName);
}

std::string AnswerWriter::name_of(std::int32_t label) const {
  const auto place = static_cast<std::size_t>(label);
  return place < class_names_.size() ? class_names_[place] : std::to_string(label);
}

std::string AnswerWriter::header() const {
  return format_ == PredictFormat::csv ? "file,rank,class,label,probability\n" : "";
}

std::string AnswerWriter::lines(const std::string& file, const std::vector<Guess>& guesses) const {
  std::string text;
  std::vector<JsonValue> objects;
  for (const Guess& guess : guesses) {
    const std::string name = name_of(guess.label);
    if (format_ == PredictFormat::text)
      text +=
          fmt::format("{:<{}}  {:.4f}  {}\n", printable(name), width_, guess.probability, printable(file));
    else if (format_ == PredictFormat::csv)
      text += fmt::format("{},{},{},{},{}\n", csv_field(file), &guess - guesses.data() + 1, csv_field(name),
                          guess.label, digits(guess.probability));
    else
      objects.push_back(JsonValue::object({{"class", valid_utf8(name)},
                                           {"label", guess.label},
                                           {"probability", std::stod(digits(guess.probability))}}));
  }
  if (format_ != PredictFormat::json) return text;
  return to_json(JsonValue::object({{"file", valid_utf8(file)}, {"predictions", JsonValue::list(objects)}})) +
         "\n";
}

std::string AnswerWriter::line_of_problem(const std::string& file, const std::string& problem) const {
  if (format_ != PredictFormat::json) return "";
  return to_json(JsonValue::object({{"file", valid_utf8(file)}, {"error", valid_utf8(problem)}})) + "\n";
}

}  // namespace fleetrun::runtime
