// --dry_run: exactly what fleetrun would start, as shell commands or as JSON.
#pragma once
#include <string>
#include <vector>

#include "base/system/environment.h"
#include "launch/plan/worker_plan.h"
#include "launch/run/run_plan.h"

namespace fleetrun::launch {

// One command line per rank, with the variables that differ from `own`, the launcher's environment.
std::string workers_as_shell_lines(const std::vector<WorkerSpec>& workers, const Environment& own);
std::string workers_as_json(const std::vector<WorkerSpec>& workers, const Environment& own);

// What --dry_run prints for this run. It shows ports that are free now.
std::string dry_run(const RunPlan& plan);

}  // namespace fleetrun::launch
