// What each attempt at the run needs anew: ports, logs, and the workers planned with them.
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
};

// The workers of one attempt; decided, not done.
std::vector<WorkerSpec> plan_attempt(const RunPlan& plan, const AttemptId& id, const Endpoints& endpoints,
                                     const RuntimeSupport& support);

// Holds the ports, opens the logs and writes what stands beside them. The ports of the attempt before are free by now, for the
// user may have named them. Throws Error(temporary|create).
Attempt prepare_attempt(const RunPlan& plan, const AttemptId& id, const LogFolder& logs,
                        const RuntimeSupport& support);

}  // namespace fleetrun::launch
