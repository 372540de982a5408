// Strategies as protobuf text for PaddlePaddle.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "job/parse_job.h"
#include "job/strategy_files/prototxt_plugin.h"

namespace fleetrun::job {

struct SavedStrategy {
  std::string text;
  std::vector<std::string> left_out;  // a line for each value that the version of PaddlePaddle cannot hold
};

// What a job sets, in its file, its strategy file or on the command line. build_strategy and execution_strategy are written in full if one of
// their keys is set, as PaddlePaddle does: its defaults differ from ours.
// `all`: also the keys that have their defaults.
SavedStrategy save_strategy_of(const ParsedJob& job, PaddleVersion version, bool all);

// The fields of another strategy file, which may be for the other version.
SavedStrategy save_strategy_again(const StrategyDocument& document, const std::string& file,
                                  PaddleVersion version);

// Whether the text is exactly what one of these functions gives for some strategy.
bool is_saved_strategy(std::string_view text);

}  // namespace fleetrun::job
