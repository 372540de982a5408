// How well a model does on some samples.
#pragma once
#include <cstdint>

namespace fleetrun::runtime {

struct Score {
  double loss = 0;  // mean over the samples
  double acc1 = 0;  // share of the samples whose label has the highest logit
  double acc5 = 0;  // ... is among the five highest
  std::int64_t samples = 0;
};

}  // namespace fleetrun::runtime
