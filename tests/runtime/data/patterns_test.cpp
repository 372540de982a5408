// The image set that comes with the project is what its generator draws, and no linear model can learn it.
#include "support/patterns.h"

#include <doctest/doctest.h>

#include <array>
#include <cmath>

#include "runtime/data/formats/idx_file.h"
#include "runtime/data/loader.h"

namespace fleetrun::runtime::patterns_test {
namespace {

constexpr int kPixels = patterns::kSide * patterns::kSide;

job::DataSetSpec pattern_files(const std::string& part) {
  const std::string start = FLEETRUN_SOURCE_DIR "/configs/patterns/" + part;
  job::DataSetSpec spec;
  spec.format = job::DataFormat::idx;
  spec.images = start + "-images.idx.gz";
  spec.labels = start + "-labels.idx.gz";
  spec.channels = 1;
  return spec;
}

// Multinomial logistic regression.
class LinearModel {
 public:
  using Scores = std::array<double, patterns::kClasses>;

  Scores probabilities(const float* image) const {
    Scores scores{};
    double sum = 0;
    for (std::size_t c = 0; c < scores.size(); ++c) {
      scores[c] = weights_[c][kPixels];
      for (std::size_t i = 0; i < kPixels; ++i) scores[c] += weights_[c][i] * image[i];
      sum += scores[c] = std::exp(scores[c]);
    }
    for (double& score : scores) score /= sum;
    return scores;
  }

  void learn(const float* image, int label, double rate) {
    const Scores scores = probabilities(image);
    for (std::size_t c = 0; c < scores.size(); ++c) {
      const double error = scores[c] - (static_cast<int>(c) == label ? 1 : 0);
      for (std::size_t i = 0; i < kPixels; ++i) weights_[c][i] -= rate * error * image[i];
      weights_[c][kPixels] -= rate * error;
    }
  }

 private:
  std::array<std::array<double, kPixels + 1>, patterns::kClasses> weights_{};
};

double accuracy(const LinearModel& model, Loader& loader) {
  int right = 0, samples = 0;
  loader.start_epoch(0);
  while (const Batch* batch = loader.next()) {
    for (int i = 0; i < batch->samples; ++i) {
      const auto scores = model.probabilities(batch->images + static_cast<std::ptrdiff_t>(i) * kPixels);
      if (std::max_element(scores.begin(), scores.end()) - scores.begin() == batch->labels[i]) ++right;
    }
    samples += batch->samples;
  }
  return static_cast<double>(right) / samples;
}

TEST_CASE("drawing the patterns again gives the committed images") {
  const auto same = [](const std::string& part, std::uint32_t seed, int count) {
    const patterns::ImageSet drawn = patterns::draw(seed, count);
    const job::DataSetSpec files = pattern_files(part);
    CHECK(read_idx_file(files.images, 3).content == drawn.pixels);
    CHECK(read_idx_file(files.labels, 1).content == drawn.labels);
  };
  same("train", patterns::kTrainSeed, patterns::kTrain);
  same("test", patterns::kTestSeed, patterns::kTest);
}

TEST_CASE("a linear model stays below 0.7 on the patterns") {
  constexpr int kEpochs = 25;  // more do not raise the test accuracy, see the check of the training accuracy
  const auto train = open_data_set(pattern_files("train")), test = open_data_set(pattern_files("test"));
  check_same_kind(*train, *test);
  LoaderOptions options;
  options.batch = 50;
  options.mean = {120};
  options.deviation = {48};
  Loader train_loader(*train, options);
  options.evaluation = true;
  Loader again(*train, options), test_loader(*test, options);
  LinearModel model;
  for (int epoch = 0; epoch < kEpochs; ++epoch) {
    train_loader.start_epoch(epoch);
    while (const Batch* batch = train_loader.next())
      for (int i = 0; i < batch->samples; ++i)
        model.learn(batch->images + static_cast<std::ptrdiff_t>(i) * kPixels, batch->labels[i],
                    0.002 / (1 + 0.2 * epoch));
  }
  const double training = accuracy(model, again), testing = accuracy(model, test_loader);
  MESSAGE("linear model: ", training, " on the training images, ", testing, " on the test images");
  CHECK(training > 0.33);  // it has learnt what there is to learn: 0.17 is chance
  CHECK(testing < 0.7);
}

}  // namespace
}  // namespace fleetrun::runtime::patterns_test
