// Writes a strategy as protobuf text, byte for byte as PaddlePaddle's save_to_prototxt does.
#pragma once
#include <string>
#include <vector>

#include "job/strategy_files/prototxt_plugin.h"

namespace fleetrun::prototxt {

// A value that has no place in the schema of this version is a problem, and not in the text.
job::StrategyText write_strategy(const JsonValue& root, job::PaddleVersion version,
                                 const std::vector<std::string>& in_full);

}  // namespace fleetrun::prototxt
