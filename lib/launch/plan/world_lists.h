// The variables that list all ranks of a run. Linux limits a variable to 128 KiB, enough for about 8,000 ranks. A
// longer list stays out of the environment, and workers find the endpoints in a file.
#pragma once
#include <map>
#include <string>

#include "base/system/environment.h"
#include "launch/plan/cluster.h"
#include "launch/plan/env_dialects.h"

namespace fleetrun::launch {

// The same for all workers.
struct WorldLists {
  std::string endpoints;  // PADDLE_TRAINER_ENDPOINTS
  std::string devices;    // PADDLE_WORLD_DEVICE_IDS: commas separate ranks, colons the devices of one rank
};
WorldLists list_world(const ClusterSpec& cluster, const Endpoints& endpoints);

using Variables = std::map<std::string, std::string>;

// Sets the variables that fit, and returns the others. If the endpoints do not fit, sets
// FLEETRUN_TRAINER_ENDPOINTS_FILE to `endpoints_file`, which has a title and then one endpoint per line.
Variables write_world_lists(const WorldLists& lists, const std::string& endpoints_file,
                            Environment& environment);

// A message about that for the user; "" when nothing was left out.
std::string describe_left_out(const Variables& left_out, const std::string& endpoints_file);

}  // namespace fleetrun::launch
