// One rank's part of `fleetrun predict`: it reads images, asks the model, and makes the lines of each image.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "runtime/data/augment.h"
#include "runtime/data/formats/data_set.h"
#include "runtime/predict/answers.h"
#include "runtime/predict/predictor.h"

namespace fleetrun::runtime {

// Of a batch of images.
struct BatchAnswer {
  std::string lines;                  // for stdout
  std::vector<std::string> problems;  // of images that cannot be read, each for stderr
};

class RankPredictions {
 public:
  // `model` and `writer` outlive it.
  RankPredictions(const ModelFile& model, const std::vector<std::string>& paths, const AnswerWriter& writer,
                  int top, int batch);

  // Of the images [first, last) of the paths, at most a batch.
  BatchAnswer predict(int first, int last);

 private:
  // Prepares an image as the test pass does. Returns why it cannot be read; "" if it can.
  std::string prepare(int image, float* planes);

  const AnswerWriter& writer_;
  int top_;
  job::Augment augment_;
  Normalisation normalisation_;
  std::unique_ptr<DataSet> images_;
  Predictor predictor_;
  std::vector<float> batch_;
  ReadScratch scratch_;
  std::vector<std::uint8_t> pixels_, row_;
};

}  // namespace fleetrun::runtime
