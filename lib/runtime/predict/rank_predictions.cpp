#include "runtime/predict/rank_predictions.h"

#include <algorithm>
#include <atomic>
#include <new>

#include "base/error/error.h"
#include "runtime/data/image_file_set.h"
#include "runtime/kernels/cpu/threads/parallel_for.h"

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

}  // namespace

RankPredictions::RankPredictions(const ModelFile& model, const std::vector<std::string>& paths,
                                 const AnswerWriter& writer, int top, const PredictorOptions& options)
    : writer_(writer),
      top_(top),
      augment_(model.card.augment),
      normalisation_(
          make_normalisation(model.card.mean, model.card.deviation, shape_of(model.card).channels)),
      images_(make_images(model.card, paths)),
      predictor_(model, options),
      batch_(static_cast<std::size_t>(options.batch) * images_->shape().elements()),
      workspaces_(static_cast<std::size_t>(std::max(1, options.threads))) {
  for (Workspace& workspace : workspaces_) workspace.pixels.resize(images_->shape().elements());
}

std::string RankPredictions::prepare(int image, Workspace& workspace, float* planes) const {
  try {
    const Framing framing = {.augment = augment_, .sample = image, .to_the_end = true};
    images_->read(framing, workspace.read, workspace.pixels.data());
    write_planes(workspace.pixels.data(), images_->shape(),
                 plan_view(augment_, framing.seed, framing.epoch, image), normalisation_, workspace.row,
                 planes);
    return "";
  } catch (const Error& problem) {
    return problem.message();
  } catch (const std::bad_alloc&) {
    return images_->describe(image) + ": no memory to read it";
  }
}

BatchAnswer RankPredictions::predict(int first, int last) {
  const std::size_t elements = images_->shape().elements();
  std::vector<std::string> problems(static_cast<std::size_t>(last - first));
  std::atomic<std::size_t> next_workspace = 0;
  cpu::parallel_for(last - first, 1, [&](std::int64_t begin, std::int64_t end) {
    Workspace& workspace = workspaces_.at(next_workspace++);
    for (std::int64_t i = begin; i < end; ++i)
      problems[static_cast<std::size_t>(i)] = prepare(first + static_cast<int>(i), workspace,
                                                      batch_.data() + static_cast<std::size_t>(i) * elements);
  });
  BatchAnswer answer;
  const std::span<const float> logits = predictor_.logits(batch_.data());
  const std::size_t classes = logits.size() / static_cast<std::size_t>(predictor_.batch());
  for (std::size_t i = 0; i < problems.size(); ++i) {
    const std::string file = images_->describe(first + static_cast<int>(i));
    if (problems[i].empty()) {
      answer.lines += writer_.lines(file, best_guesses(logits.subspan(i * classes, classes), top_));
    } else {
      answer.lines += writer_.line_of_problem(file, problems[i]);
      answer.problems.push_back(problems[i]);
    }
  }
  return answer;
}

}  // namespace fleetrun::runtime
