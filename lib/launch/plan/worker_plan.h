// Exactly what fleetrun will start: one WorkerSpec per rank of this node. Starts nothing itself.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/system/endpoint.h"
#include "base/system/environment.h"
#include "launch/plan/cluster.h"
#include "launch/plan/env_dialects.h"
#include "launch/plan/program.h"
#include "launch/plan/world_lists.h"

namespace fleetrun::launch {

struct WorkerSpec {
  int rank = 0;
  std::string executable;
  std::vector<std::string> argv;
  Environment environment;
  std::string log_path;            // as people see it
  std::string error_log_path;      // of stderr alone; "": it goes to log_path
  std::vector<int> cpus;           // that it may use; empty: those of the launcher
  std::vector<int> inherited_fds;  // beside 0, 1 and 2
  Variables left_out;              // variables that are too long for the environment

  Environment whole_environment() const;  // including left_out
};

// Settings for our own worker program only (RankEnv).
struct EmbeddedPlan {
  std::map<std::string, std::string> job_environment;  // "env" of the job file
  std::optional<int> threads;                          // "train.threads"
  Endpoint store;                                      // port 0: none
  int key_fd = -1;
  int job_fd = -1;         // the text of the job file; -1: there is none
  std::string stop_dir;    // absolute: where a stop saves a checkpoint; empty: nowhere, or as the job says
  std::string dump_dir;    // absolute; empty: write no programs
  std::string passes_dir;  // for the program after each pass; likewise
  std::vector<int> progress_fds;  // one per local rank
};

struct PlanRequest {
  const ClusterSpec& cluster;
  const Endpoints& endpoints;
  const Program& program;
  const std::map<int, Program>& wrapped;  // programs of ranks that run another one (--debug_rank)
  const LaunchOptions& options;
  const Environment& environment;  // of the launcher
  std::string log_dir;             // as the user wrote it
  std::string absolute_log_dir;    // folder that has endpoints.log
  std::string run_id;
  int attempt = 0;
  int restarts = 0;  // before this attempt; fewer than attempts when nodes joined during the run
  std::optional<EmbeddedPlan> embedded;
};

std::vector<WorkerSpec> plan_workers(const PlanRequest& request);

}  // namespace fleetrun::launch
