#include "runtime/predict/rank_predictions.h"

#include <algorithm>
#include <cmath>
#include <new>

#include <fmt/format.h>

#include "base/error/error.h"
#include "base/text/printable.h"
#include "runtime/data/formats/image_file_set.h"

namespace fleetrun::runtime {
namespace {

ImageShape shape_of(const ModelCard& card) {
  const auto& [channels, height, width] = *card.model.input_shape;
  return {channels, height, width};
}

// The labels are unknown, and nobody reads them.
std::unique_ptr<DataSet> make_images(const ModelCard& card, const std::vector<std::string>& paths) {
  DataSetFacts facts = {
      .shape = shape_of(card), .classes = card.facts().classes, .class_names = card.class_names};
  facts.labels.resize(paths.size());
  return make_image_file_set(std::move(facts), paths);
}

// The classes of an answer without numbers would be in no order.
void require_numbers(std::span<const float> logits, const std::string& file) {
  if (!std::all_of(logits.begin(), logits.end(), [](float logit) { return std::isfinite(logit); }))
    throw Error(ErrorKind::numerics, fmt::format("the scores of {} are not finite", printable(file)),
                "the weights of the model hold NaN or infinity, or the pixels are too large for it");
}

}  // namespace

RankPredictions::RankPredictions(const ModelFile& model, const std::vector<std::string>& paths,
                                 const AnswerWriter& writer, int top, int batch)
    : writer_(writer),
      top_(top),
      augment_(model.card.augment),
      normalisation_(
          make_normalisation(model.card.mean, model.card.deviation, shape_of(model.card).channels)),
      images_(make_images(model.card, paths)),
      predictor_(model, batch),
      batch_(static_cast<std::size_t>(batch) * images_->shape().elements()),
      pixels_(images_->shape().elements()) {}

std::string RankPredictions::prepare(int image, float* planes) {
  try {
    const Framing framing = {.augment = augment_, .sample = image, .to_the_end = true};
    images_->read(framing, scratch_, pixels_.data());
    write_planes(pixels_.data(), images_->shape(), plan_view(framing), normalisation_, row_, planes);
    return "";
  } catch (const Error& problem) {
    return problem.message();
  } catch (const std::bad_alloc&) {
    return images_->describe(image) + ": no memory to read it";
  }
}

BatchAnswer RankPredictions::predict(int first, int last) {
  std::vector<std::string> problems;
  for (int i = first; i < last; ++i)
    problems.push_back(
        prepare(i, batch_.data() + static_cast<std::size_t>(i - first) * images_->shape().elements()));
  const std::span<const float> logits = predictor_.logits(batch_.data());
  const std::size_t classes = logits.size() / static_cast<std::size_t>(predictor_.batch());
  BatchAnswer answer;
  for (std::size_t i = 0; i < problems.size(); ++i) {
    const std::string file = images_->describe(first + static_cast<int>(i));
    if (problems[i].empty()) {
      require_numbers(logits.subspan(i * classes, classes), file);
      answer.lines += writer_.lines(file, best_guesses(logits.subspan(i * classes, classes), top_));
    } else {
      answer.lines += writer_.line_of_problem(file, problems[i]);
      answer.problems.push_back(problems[i]);
    }
  }
  return answer;
}

}  // namespace fleetrun::runtime
