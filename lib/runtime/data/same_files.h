// Which samples of data sets are the same image in the same file. A file may have several paths by symbolic links; a hard link is another
// file.
#pragma once
#include <cstdint>
#include <vector>

#include "runtime/data/formats/data_set.h"

namespace fleetrun::runtime {

// For each sample, the first one that is the same image: the sample itself, unless an image_list names its file more than once or
// a symbolic link leads to the file.
std::vector<std::int32_t> find_first_copies(const DataSet& set);

// How many samples of `test` are in `train`, too.
int count_shared_samples(const DataSet& test, const DataSet& train);

}  // namespace fleetrun::runtime
