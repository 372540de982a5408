// A pass rewrites a program for what the job's strategy asks. One function and one file each.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "job/job_spec.h"
#include "runtime/graph/program.h"
#include "runtime/kernels/kernel.h"
#include "runtime/ops/op_def.h"

namespace fleetrun::runtime {

struct PassContext {
  const OpTable& ops;
  const job::StrategySpec& strategy;
  int world_size = 1;
  const KernelTable* kernels = nullptr;  // of the device that will run the program; null: it has every op
  std::vector<std::string>* messages = nullptr;  // what people are told, in order; null: nobody listens

  bool device_has(std::string_view op) const { return kernels == nullptr || kernels->count(op) > 0; }
  void tell(std::string message) const {
    if (messages != nullptr) messages->push_back(std::move(message));
  }
};

}  // namespace fleetrun::runtime
