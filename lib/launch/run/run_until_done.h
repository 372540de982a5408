// The middle process, from its log folder to its exit code, alone or with other nodes.
//
// A run has three layers of processes. The user starts the front process. It guards the middle process, which runs the
// loop (run_loop.h) and starts the ranks (launch/process/guardian.h).
#pragma once
#include "launch/loop/clock.h"
#include "launch/process/exit_status.h"
#include "launch/run/run_plan.h"

namespace fleetrun::launch {

// Runs the workers until the run is over, writes the report, and returns the exit code. `front_fd` reaches its end when
// the front process is gone. Throws Error when fleetrun cannot go on in the first attempt.
int run_until_done(const RunPlan& plan, int front_fd);

// For the front process: writes the report when a signal ended the middle process.
void report_lost_run(const RunPlan& plan, const Moment& started, const ExitStatus& middle);

}  // namespace fleetrun::launch
