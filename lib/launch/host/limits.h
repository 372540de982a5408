// What the operating system allows, in the words that its errors lack.
#pragma once
#include <sys/resource.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/system/environment.h"
#include "launch/process/exit_status.h"

namespace fleetrun::launch {

// What needs descriptors of this process.
struct DescriptorUsers {
  int ranks = 1;            // that it starts
  int nodes = 0;            // that connect to it; only to the first node
  int nodes_later = 0;      // that connect to it if it takes over from the first node
  int ranks_elsewhere = 0;  // that connect to its store, if the other nodes have as many as this one
};

// Raises our limit of open descriptors as far as the run needs it and the hard limit allows it. Throws Error(os) when that is too
// little for the ranks here and the nodes.
void raise_descriptor_limit(const DescriptorUsers& users);

constexpr std::size_t kLongestString = 131071;  // MAX_ARG_STRLEN of Linux less the final NUL

// Of "NAME=value".
inline std::size_t bytes_of_variable(const std::string& name, const std::string& value) {
  return name.size() + 1 + value.size();
}

// Throws Error(os) that names the argument or variable which is longer than Linux passes on.
void check_argument_sizes(const std::vector<std::string>& argv, const Environment& environment);

struct ProcessLimit {
  std::uint64_t most = 0;
  std::string whose;   // "this user"
  std::string source;  // "ulimit -u"
};
// The lowest one, which is the first that a run reaches; "" when there is none.
std::string describe_lowest(const std::vector<ProcessLimit>& limits);

// Why a process cannot be started, beyond the errno: "this cgroup may have 20 processes (pids.max in ...)". "" when nothing is known.
std::string describe_spawn_limit(int error, const std::vector<std::string>& argv,
                                 const Environment& environment);

// Limits that end a process, and that ours inherit from us.
struct DeadlyLimits {
  rlim_t file_bytes = RLIM_INFINITY;
  rlim_t cpu_seconds = RLIM_INFINITY, hard_cpu_seconds = RLIM_INFINITY;
};
DeadlyLimits read_deadly_limits();

// Which of them ended a process that took `cpu_seconds` without its children: "files may have 1024 bytes (ulimit -f)". "" when none did.
std::string describe_death_limit(const ExitStatus& status, double cpu_seconds, const DeadlyLimits& limits);

}  // namespace fleetrun::launch
