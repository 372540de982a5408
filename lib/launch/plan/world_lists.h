// The variables that list all ranks of a run. Linux passes on 128 KiB in one variable, which some 8,000 ranks fill: a longer list stays
// out of the environment, and workers find the endpoints in a file.
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
  std::string devices;    // PADDLE_WORLD_DEVICE_IDS: ranks apart by commas, the devices of one rank by colons
};
WorldLists list_world(const ClusterSpec& cluster, const Endpoints& endpoints);

using Variables = std::map<std::string, std::string>;

// Sets the variables that fit and gives the others back. Without the endpoints FLEETRUN_TRAINER_ENDPOINTS_FILE is set to
// `endpoints_file`, which has one endpoint a line, below a title.
Variables write_world_lists(const WorldLists& lists, const std::string& endpoints_file,
                            Environment& environment);

// What people read of that; "" when nothing was left out.
std::string describe_left_out(const Variables& left_out, const std::string& endpoints_file);

}  // namespace fleetrun::launch
