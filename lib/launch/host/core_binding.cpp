#include "launch/host/core_binding.h"

#include <sched.h>

#include <algorithm>
#include <fstream>
#include <tuple>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error/error.h"

namespace fleetrun::launch {
namespace {

int read_number(const std::string& path, int fallback) {
  std::ifstream file(path);
  int number = 0;
  return file >> number ? number : fallback;
}

// The first of `items` that belongs to the share `index` of `shares`; sizes differ by one at most.
std::size_t start_of_share(std::size_t items, std::size_t index, std::size_t shares) {
  return items * index / shares;
}

}  // namespace

std::vector<CpuPlace> probe_cpus(const std::string& root) {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  std::vector<CpuPlace> cpus;
  if (::sched_getaffinity(0, sizeof mask, &mask) != 0) return cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &mask)) continue;
    const std::string folder = fmt::format("{}/sys/devices/system/cpu/cpu{}/topology/", root, cpu);
    cpus.push_back({.cpu = cpu,
                    .package = read_number(folder + "physical_package_id", 0),
                    .core = read_number(folder + "core_id", cpu)});
  }
  return cpus;
}

std::vector<std::vector<int>> share_cpus(std::vector<CpuPlace> cpus, int ranks) {
  if (std::ssize(cpus) < ranks)
    throw Error(ErrorKind::usage,
                fmt::format("--bind is cores: {} ranks, but {} cores may be used here", ranks, cpus.size()),
                "--bind=none lets ranks share cores");
  std::sort(cpus.begin(), cpus.end(), [](const CpuPlace& a, const CpuPlace& b) {
    return std::tie(a.package, a.core, a.cpu) < std::tie(b.package, b.core, b.cpu);
  });
  std::vector<std::vector<int>> cores;  // the hyperthreads of each
  for (std::size_t i = 0; i < cpus.size(); ++i) {
    const bool same = i > 0 && cpus[i].package == cpus[i - 1].package && cpus[i].core == cpus[i - 1].core;
    if (!same) cores.emplace_back();
    cores.back().push_back(cpus[i].cpu);
  }
  if (std::ssize(cores) < ranks) {  // each hyperthread is on its own
    cores.clear();
    for (const CpuPlace& place : cpus) cores.push_back({place.cpu});
  }
  const auto shares = static_cast<std::size_t>(ranks);
  std::vector<std::vector<int>> of_rank(shares);
  for (std::size_t rank = 0; rank < shares; ++rank)
    for (std::size_t i = start_of_share(cores.size(), rank, shares);
         i < start_of_share(cores.size(), rank + 1, shares); ++i)
      of_rank[rank].insert(of_rank[rank].end(), cores[i].begin(), cores[i].end());
  return of_rank;
}

std::string describe_cpus(std::vector<int> cpus) {
  std::sort(cpus.begin(), cpus.end());
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < cpus.size();) {
    std::size_t last = i;
    while (last + 1 < cpus.size() && cpus[last + 1] == cpus[last] + 1) ++last;
    parts.push_back(last == i ? std::to_string(cpus[i]) : fmt::format("{}-{}", cpus[i], cpus[last]));
    i = last + 1;
  }
  return fmt::format("{}", fmt::join(parts, ","));
}

}  // namespace fleetrun::launch
