// What a pass gets besides the program. A pass rewrites a program for the job's strategy; each is one function in one file.
#pragma once
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "job/spec/job_spec.h"
#include "runtime/graph/op_def.h"
#include "runtime/graph/program.h"

namespace fleetrun::runtime {

using OpNames = std::set<std::string, std::less<>>;

struct PassContext {
  const OpTable& ops;
  const job::StrategySpec& strategy;
  int world_size = 1;                            // ranks that train the same layers with different samples
  const OpNames* device_ops = nullptr;           // of the device that will run the program; null: every op
  std::vector<std::string>* messages = nullptr;  // gets the messages for the user, in order; null: drops them
  double share_of_step = 0;                      // of this rank in the samples of a step; 0: 1 / world_size
  int stages = 1;                                // of a pipeline

  bool device_has(std::string_view op) const { return device_ops == nullptr || device_ops->count(op) > 0; }
  void tell(std::string message) const {
    if (messages != nullptr) messages->push_back(std::move(message));
  }
};

}  // namespace fleetrun::runtime
