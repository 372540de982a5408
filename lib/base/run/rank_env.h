// What the launcher tells a worker of ours: the one place where launch and runtime meet.
// Written into environment variables (FLEETRUN_*) by the launcher, read back by the worker.
#pragma once
#include <string>

#include "base/run/comm_backend.h"
#include "base/system/endpoint.h"
#include "base/system/environment.h"

namespace fleetrun {

struct RankEnv {
  int rank = 0;  // 0 .. world_size-1, over all nodes
  int world_size = 1;
  int local_rank = 0;  // 0 .. local_size-1, on this node
  int local_size = 1;
  int node_rank = 0;
  int nodes = 1;
  int attempt = 0;       // 0 at first, one more with each restart; the store refuses other attempts
  std::string run_id;    // the same for all ranks of one run
  Endpoint store;        // the launcher's store; port 0 when there is none (one rank)
  int key_fd = -1;       // inherited descriptor with the run key, read once; -1: none
  int progress_fd = -1;  // inherited memfd of one ProgressPage; -1: none
  int job_fd = -1;       // inherited memfd with the text of the job file; -1: read the file
  std::string log_dir;   // absolute
  std::string
      stop_dir;  // absolute: a training without checkpoint.dir saves there when it is stopped; empty: nowhere
  std::string device = "cpu";  // "cpu" or "cuda:INDEX"
  std::string dump_dir;        // absolute: rank 0 writes its programs there; empty: nobody does
  std::string passes_dir;      // the same of its program after each pass
  int threads = 1;             // compute threads when the job does not say
  CommBackend comm_backend = CommBackend::automatic;  // set by the user, not by the launcher

  bool operator==(const RankEnv&) const = default;
};

void write_rank_env(const RankEnv& rank_env, Environment& environment);

// Without FLEETRUN_RANK: the RankEnv of a single rank, as when the worker is started by hand.
// Throws Error(usage) for a variable that is missing, is not a number or names no backend.
RankEnv read_rank_env(const Environment& environment);

}  // namespace fleetrun
