// A pass rewrites a program for what the job's strategy asks. One function and one file each.
#pragma once
#include "job/job_spec.h"
#include "runtime/graph/program.h"
#include "runtime/ops/op_def.h"

namespace fleetrun::runtime {

struct PassContext {
  const OpTable& ops;
  const job::StrategySpec& strategy;
  int world_size = 1;
};

}  // namespace fleetrun::runtime
