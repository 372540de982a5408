// The variables of a worker, with the names of each framework. Both frameworks get the same GPU mapping.
#pragma once
#include <string>
#include <vector>

#include "base/system/endpoint.h"
#include "base/system/environment.h"
#include "launch/plan/cluster.h"

namespace fleetrun::launch {

// Where the ranks of the run should listen. All ports on one host differ.
struct Endpoints {
  std::vector<Endpoint> ranks;  // in rank order
  Endpoint master;              // bound by rank 0 (PyTorch's and Paddle's TCPStore)
};

struct PaddleNames {
  std::string log_dir;             // absolute
  std::string pod;                 // used if POD_NAME is not set
  std::string backup_env;          // file with the worker's environment; "": none
  std::string auto_cluster = "0";  // as PaddlePaddle's launcher writes it: 0, True or False
};

// PaddlePaddle 2.0 up to the current launcher, without the lists of all ranks (world_lists.h).
void write_paddle_environment(const ClusterSpec& cluster, const Endpoints& endpoints, int rank,
                              const PaddleNames& names, Environment& environment);

struct TorchNames {
  std::string run_id;
  std::string error_file;  // where torch.distributed.elastic's @record leaves its traceback
  int restarts = 0;
  int max_restarts = 0;
  std::string role = "default";
  std::string signals = "SIGTERM,SIGINT,SIGHUP,SIGQUIT";  // torchrun's default
  bool virtual_local_rank = false;
};

// The variables for init_method="env://", and those that torchrun adds.
void write_torch_environment(const ClusterSpec& cluster, const Endpoints& endpoints, int rank,
                             const TorchNames& names, Environment& environment);

}  // namespace fleetrun::launch
