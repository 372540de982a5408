// What a model says about an image, and how it is printed.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/run/predict_request.h"
#include "runtime/checkpoint/model_card.h"

namespace fleetrun::runtime {

struct Guess {
  std::int32_t label = 0;
  float probability = 0;
};

// The `top` most probable classes by the softmax of the logits, the most probable one first; equal ones in the order of their labels.
std::vector<Guess> best_guesses(std::span<const float> logits, int top);

class AnswerWriter {
 public:
  AnswerWriter(PredictFormat format, std::vector<std::string> class_names);

  // The line before all others, with its end; "" where there is none.
  std::string header() const;

  // The lines of one image, each with its end.
  //   text   Border_collie  0.9731  dog.jpg                            a line per guess
  //   csv    dog.jpg,1,Border_collie,17,0.973145                       the same; RFC 4180
  //   json   {"file": "dog.jpg", "predictions": [{"class": "Border_collie", "label": 17, "probability": 0.973145}]}
  std::string lines(const std::string& file, const std::vector<Guess>& guesses) const;

  // The same for an image that cannot be read: only JSON has a line for it.
  std::string line_of_problem(const std::string& file, const std::string& problem) const;

 private:
  std::string name_of(std::int32_t label) const;  // its number where it has none

  PredictFormat format_;
  std::vector<std::string> class_names_;
  std::size_t width_ = 0;  // of the longest name, in columns
};

}  // namespace fleetrun::runtime
