// Prepares an attempt: new ports, new logs, and the workers planned with them.
#pragma once
#include <string>
#include <vector>

#include "launch/logs/log_folder.h"
#include "launch/run/run_plan.h"
#include "launch/run/runtime_support.h"
#include "launch/supervise/process_group.h"

namespace fleetrun::launch {

// Which attempt of which run.
struct AttemptId {
  std::string run_id;
  int number = 0;
  int restarts = 0;  // before it
};

// Plans the workers of one attempt, and starts nothing. `logs`: the absolute path of their folder.
std::vector<WorkerSpec> plan_attempt(const RunPlan& plan, const AttemptId& id, const Endpoints& endpoints,
                                     const std::string& logs, const RuntimeSupport& support);

// Opens the logs and writes the files beside them. `ports` has the endpoints of all nodes. Throws Error(create).
Attempt prepare_attempt(const RunPlan& plan, const AttemptId& id, HeldPorts ports, const LogFolder& logs,
                        const RuntimeSupport& support);

}  // namespace fleetrun::launch
