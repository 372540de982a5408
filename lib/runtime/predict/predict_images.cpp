#include "runtime/predict/predict_images.h"

#include <sched.h>

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "base/error/error.h"
#include "base/text/plural.h"
#include "runtime/predict/answers.h"
#include "runtime/predict/forked_ranks.h"
#include "runtime/predict/rank_predictions.h"

namespace fleetrun::runtime {
namespace {

constexpr int kUsualBatch = 16;  // larger ones are not faster on a core
constexpr int kTopOfSingle = 5;  // as Keras and ultralytics print

int usable_cores() {
  cpu_set_t mask;
  return ::sched_getaffinity(0, sizeof mask, &mask) == 0 ? CPU_COUNT(&mask) : 1;
}

// The work in batches of consecutive images.
struct Batches {
  int images, batch;

  int count() const { return (images + batch - 1) / batch; }
  int first(int number) const { return number * batch; }
  int last(int number) const { return std::min(images, first(number) + batch); }
};

class Report {
 public:
  explicit Report(const PredictOutput& output) : output_(output) {}

  void add(const BatchAnswer& answer) {
    output_.answers(answer.lines);
    for (const std::string& problem : answer.problems) output_.problem(problem);
    problems_ += static_cast<int>(answer.problems.size());
  }
  void finish(int images) const {
    if (problems_ == 0) return;
    throw Error(ErrorKind::data,
                fmt::format("{} of {} could not be read", problems_, plural(images, "image")));
  }

 private:
  const PredictOutput& output_;
  int problems_ = 0;
};

void check_channels(const ModelFile& model) {
  const int channels = model.card.model.input_shape->front();
  if (channels != 1 && channels != 3)
    throw Error(ErrorKind::data, fmt::format("{} is for images with {}, wanted 1 for grey or 3 for colour",
                                             model.path, plural(channels, "channel")));
}

}  // namespace

void predict_images(const ModelFile& model, const std::vector<std::string>& paths, bool single,
                    const PredictRequest& request, const PredictOutput& output) {
  check_channels(model);
  check_weights(model);
  const AnswerWriter writer(request.format, model.card.class_names);
  const int top = request.top > 0 ? request.top : single ? kTopOfSingle : 1;
  const int images = static_cast<int>(std::ssize(paths));
  const int wanted_batch = request.batch_size > 0 ? request.batch_size : single ? 1 : kUsualBatch;
  const int batch = std::clamp(wanted_batch, 1, std::max(1, images));
  const Batches batches = {images, batch};
  const int wanted = request.ranks > 0 ? request.ranks : usable_cores();
  const int ranks = std::clamp(wanted, 1, std::max(1, batches.count()));
  Report report(output);
  output.answers(writer.header());
  if (ranks == 1) {
    RankPredictions rank(model, paths, writer, top, batch);
    for (int i = 0; i < batches.count(); ++i) report.add(rank.predict(batches.first(i), batches.last(i)));
  } else {
    const auto work = [&](int number, const SendAnswer& send) {
      RankPredictions rank(model, paths, writer, top, batch);
      for (int i = number; i < batches.count(); i += ranks)
        send(rank.predict(batches.first(i), batches.last(i)));
    };
    ForkedRanks forked(ranks, work);
    for (int i = 0; i < batches.count(); ++i) report.add(forked.next(i % ranks));
  }
  report.finish(batches.images);
}

}  // namespace fleetrun::runtime
