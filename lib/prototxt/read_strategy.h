// Reads the protobuf text of a strategy and finds out which version of PaddlePaddle it is for.
#pragma once
#include <string_view>

#include "job/strategy_files/prototxt_plugin.h"

namespace fleetrun::prototxt {

// The names of the fields tell the versions apart. A text with fields that only one version has, beside fields that only the other has, is a
// problem, as is a field that neither has.
job::StrategyDocument read_strategy(std::string_view text);

}  // namespace fleetrun::prototxt
