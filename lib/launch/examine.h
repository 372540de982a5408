// Examines the nodes of a run: `fleetrun doctor`, and --preflight before a start.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "base/system/environment.h"
#include "job/parse_job.h"
#include "launch/cli/flags/launch_options.h"
#include "launch/doctor/doctor.h"
#include "launch/host/host_facts.h"
#include "launch/run/run_plan.h"
#include "launch/schedulers/allocation.h"

namespace fleetrun::launch {

// `fleetrun doctor`: examines the nodes on which launch() would start the run. `options.program` may be empty. `words` start the doctor on the
// other nodes. Returns what run_doctor() returns.
int examine(LaunchOptions options, const Environment& environment,
            const std::optional<Allocation>& allocation, const std::vector<std::string>& words,
            DoctorOutput output);

// --preflight: the same of a run that is about to start. All nodes wait for each other as long as for the run.
int examine_before(const RunPlan& plan, const HostFacts& host, const std::optional<job::ParsedJob>& job);

}  // namespace fleetrun::launch
