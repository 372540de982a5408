// What the user reads when a run begins, fails or ends. Messages that PaddlePaddle's launcher also
// prints keep its words and order.
#pragma once
#include <sys/types.h>

#include <string>
#include <vector>

#include "launch/cli/flags/launch_options.h"
#include "launch/console/console.h"
#include "launch/logs/log_folder.h"
#include "launch/plan/cluster.h"
#include "launch/plan/worker_plan.h"
#include "launch/report/report.h"
#include "launch/supervise/supervisor.h"

namespace fleetrun::launch {

// Where the logs of the run before are now; "": there were none, or the first node says it.
std::string describe_previous(const ClusterSpec& cluster, const LogFolder& logs);

void announce_start(const LaunchOptions& options, const ClusterSpec& cluster,
                    const std::vector<WorkerSpec>& workers, Console& console);

// Prints messages that belong to the event itself. `command`: the command of a worker.
void announce_event(const Event& event, const Verdict& verdict, const std::vector<std::string>& command,
                    Console& console);

// Says that these signals were not passed on, because they would have ended the ranks.
void announce_left_alone(const std::vector<PassOn>& signals, Console& console);

// These processes, which the ranks have left, still read what a rank has written into a pipe, and the end of the attempt waits for them.
void announce_pipe_readers(const std::vector<pid_t>& readers, Console& console);

// `before` has ended, and attempt number `attempt` begins after `delay`.
void announce_restart(int attempt, const LaunchOptions& options, Clock::duration delay,
                      const AttemptRecord& before, Console& console);

// The ranks had not started yet, and another attempt is prepared, which counts as restart number `restart`.
void announce_restart_before_start(int restart, const LaunchOptions& options, const std::string& why,
                                   Console& console);

// `before` has ended, because a node has joined; another attempt begins at once.
void announce_regrouping(const AttemptRecord& before, Console& console);

// Nodes have come or gone: which ranks are here now.
void announce_places(const ClusterSpec& cluster, Console& console);

}  // namespace fleetrun::launch
