// The memory of this machine, within the limit of this process' cgroup.
#pragma once
#include <cstdint>
#include <string>

namespace fleetrun {

struct HostMemory {
  std::int64_t total = 0, free = 0;  // bytes; free: what programs could take without swapping
  std::int64_t swap = 0;             // bytes of all swap space
};

HostMemory read_host_memory();

// The path of our cgroup for a controller of version 1, or of version 2 with "". "" when there is none.
std::string path_of_cgroup(const std::string& controller);

// A number in a file of the kernel; -1 without one ("max").
std::int64_t number_in(const std::string& file);

}  // namespace fleetrun
