// Where the cgroup of this process is, in either version.
#pragma once
#include <string>

namespace fleetrun::launch {

// The folder that has the files of this controller ("memory", "pids"); "" when there is none to be seen.
std::string own_cgroup_folder(const std::string& controller);

// The folder of this process in the version 2 hierarchy, by the texts of /proc/self/mountinfo and /proc/self/cgroup;
// "" when there is none.
std::string cgroup2_folder(const std::string& mountinfo, const std::string& cgroup);

}  // namespace fleetrun::launch
