// The training program of a model of ours, as the ranks build it.
#pragma once
#include <algorithm>
#include <string>
#include <vector>

#include "runtime/compile/build_program.h"

namespace fleetrun::runtime::test {

struct BuiltModel {
  Program program;
  std::vector<std::string> messages;  // of the passes

  int count(const std::string& type) const {
    return static_cast<int>(
        std::count_if(program.ops.begin(), program.ops.end(), [&](const Op& op) { return op.type == type; }));
  }
  bool tells(const std::string& message) const {
    return std::find(messages.begin(), messages.end(), message) != messages.end();
  }
};

inline BuiltModel build_model(job::ModelName name, int classes, int world_size,
                              const job::StrategySpec& strategy = {}) {
  job::JobSpec job;
  job.model.name = name;
  job.data.batch_size = 2;
  job.strategy = strategy;
  BuiltModel built;
  built.program = build_training_program(job, {.input_shape = {3, 224, 224}, .classes = classes}, all_ops(),
                                         {.world_size = world_size, .messages = &built.messages});
  return built;
}

}  // namespace fleetrun::runtime::test
