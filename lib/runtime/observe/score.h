// How well a model does on some samples.
#pragma once
#include <cstdint>
#include <optional>

namespace fleetrun::runtime {

struct Score {
  double loss = 0;  // mean over the samples
  double acc1 = 0;  // share of the samples whose label has the highest logit
  std::optional<double>
      acc5;  // ... is among the five highest; none where there are no more than five classes
  std::int64_t samples = 0;
};

// The share of the samples whose label is among the five highest logits; none where that is always so.
inline std::optional<double> acc5_of(double share, std::int64_t classes) {
  return classes > 5 ? std::optional(share) : std::nullopt;
}

// Throws Error(data) when no sample of a data set of this size could be read (data.bad_sample=skip): a loss of 0 would be the best there is.
void require_samples(const Score& score, int size);

}  // namespace fleetrun::runtime
