// What the operating system allows, in the words that its errors lack.
#pragma once
#include <string>
#include <vector>

#include "base/environment.h"

namespace fleetrun::launch {

// Raises our limit of open descriptors as far as a run of so many ranks needs it and the hard limit allows it.
// Throws Error(os) when that is too little.
void raise_descriptor_limit(int ranks);

// Throws Error(os) that names the argument or variable which is longer than Linux passes on.
void check_argument_sizes(const std::vector<std::string>& argv, const Environment& environment);

// Why a process cannot be started, beyond the errno: "at most 20 processes (pids.max of ...)". "" when nothing is known.
std::string describe_spawn_limit(int error, const std::vector<std::string>& argv,
                                 const Environment& environment);

}  // namespace fleetrun::launch
