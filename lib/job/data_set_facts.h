// What a data set's keys tell about its samples before anything is read.
#pragma once
#include <array>
#include <optional>

#include "job/job_spec.h"

namespace fleetrun::job {

int channels_of(const DataSetSpec& set);                   // of a sample
std::optional<int> known_classes(const DataSetSpec& set);  // nothing when only the data tells
std::optional<std::array<int, 3>> known_shape(
    const DataSetSpec& set);  // [C,H,W]; nothing when only the data tells

}  // namespace fleetrun::job
