// --bind: which cores each rank of this host may use. Ranks get neighbours, and share no core before they have to.
#pragma once
#include <string>
#include <vector>

namespace fleetrun::launch {

struct CpuPlace {
  int cpu = 0;  // as the kernel numbers it
  int package = 0, core = 0;
};

// Those in our affinity mask, with their places as far as /sys tells them. `root` stands before /sys in tests.
std::vector<CpuPlace> probe_cpus(const std::string& root = "");

// The cpus of each rank. Hyperthreads of a core stay together while there is a core for each rank.
// Throws Error(usage) when there are fewer cpus than ranks.
std::vector<std::vector<int>> share_cpus(std::vector<CpuPlace> cpus, int ranks);

std::string describe_cpus(std::vector<int> cpus);  // "0-3,8", as taskset takes it

}  // namespace fleetrun::launch
