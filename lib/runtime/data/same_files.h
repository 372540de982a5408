// Which samples of data sets are the same image in the same file. A folder may have several paths; links to files are not followed.
#pragma once
#include <cstdint>
#include <vector>

#include "runtime/data/formats/data_set.h"

namespace fleetrun::runtime {

// For each sample, the first one that is the same image: the sample itself, unless an image_list names its file more than once.
std::vector<std::int32_t> find_first_copies(const DataSet& set);

// How many samples of `test` are in `train`, too.
int count_shared_samples(const DataSet& test, const DataSet& train);

}  // namespace fleetrun::runtime
