// What the user reads while a run begins, fails or ends, in the order and words of the original launcher
// where it has them.
#pragma once
#include <string>
#include <vector>

#include "launch/cli/launch_options.h"
#include "launch/console/console.h"
#include "launch/plan/cluster.h"
#include "launch/plan/worker_plan.h"
#include "launch/report/report.h"
#include "launch/supervise/supervisor.h"

namespace fleetrun::launch {

void announce_start(const LaunchOptions& options, const ClusterSpec& cluster,
                    const std::vector<WorkerSpec>& workers, Console& console);

// Says what has to be said the moment it happens; `command` is that of a worker.
void announce_event(const Event& event, const Verdict& verdict, const std::vector<std::string>& command,
                    Console& console);

// These signals were not passed on to the ranks, as they would have ended them.
void announce_left_alone(const std::vector<PassOn>& signals, Console& console);

// The attempt before has ended, attempt number `attempt` begins after `delay`.
void announce_restart(int attempt, int most, Clock::duration delay, const AttemptRecord& before,
                      Console& console);

}  // namespace fleetrun::launch
