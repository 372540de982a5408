// One data set as two: most samples to train on, the others to evaluate on (data.split).
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/data/formats/data_set.h"

namespace fleetrun::runtime {

struct SplitSamples {
  std::vector<std::int32_t> train, test;  // numbers of samples, ascending
};

// Of each class the same share goes to `test`, drawn by the seed: at least one sample where the class has two, never all of them.
// The same on every machine for the same labels. `first_copies`: for each sample, the first one that is the same image, and goes to
// the same side; empty: all images differ.
SplitSamples split_by_class(const std::vector<std::int32_t>& labels, double share, std::int64_t seed,
                            const std::vector<std::int32_t>& first_copies = {});

struct SplitSet {
  std::unique_ptr<DataSet> train, test;
};

// Both keep `whole` alive. No image is in both. Throws Error(data) when no sample is left to evaluate on, because no class has two images.
SplitSet split_data_set(std::shared_ptr<const DataSet> whole, double share, std::int64_t seed);

}  // namespace fleetrun::runtime
