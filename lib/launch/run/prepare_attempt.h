// What each attempt at the run needs anew: ports, logs, progress pages, and the workers planned with them.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "launch/logs/log_folder.h"
#include "launch/plan/port_guard.h"
#include "launch/run/run_plan.h"
#include "launch/run/runtime_support.h"
#include "launch/supervise/process_group.h"

namespace fleetrun::launch {

// The workers of one attempt; decided, not done. `support` is null without the embedded runtime.
std::vector<WorkerSpec> plan_attempt(const NodeRun& run, int attempt, const Endpoints& endpoints,
                                     const std::string& run_id, const RuntimeSupport* support);

class Attempts {
 public:
  // All outlive it; `support` is null without the embedded runtime.
  Attempts(const NodeRun& run, const LogFolder& logs, const std::string& run_id, RuntimeSupport* support);

  Attempt prepare(int attempt);
  const Environment& environment() const { return environment_; }  // of rank 0, as last planned

 private:
  const NodeRun& run_;
  const LogFolder& logs_;
  const std::string& run_id_;
  RuntimeSupport* support_;
  HeldPorts ports_;
  Environment environment_;
};

}  // namespace fleetrun::launch
