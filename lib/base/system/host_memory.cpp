#include "base/system/host_memory.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>
#include <utility>

namespace fleetrun {
namespace {

constexpr std::int64_t kKiB = 1024;

std::string kernel_text(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// "MemAvailable:  123 kB" in bytes.
std::int64_t memory_called(const std::string& table, const std::string& name) {
  const auto at = table.find(name + ":");
  return at == std::string::npos ? 0 : std::strtoll(table.c_str() + at + name.size() + 1, nullptr, 10) * kKiB;
}

}  // namespace

std::int64_t number_in(const std::string& file) {
  const std::string text = kernel_text(file);
  char* end = nullptr;
  const long long value = std::strtoll(text.c_str(), &end, 10);
  return end == text.c_str() ? -1 : value;
}

std::string path_of_cgroup(const std::string& controller) {
  std::istringstream table(kernel_text("/proc/self/cgroup"));
  for (std::string line; std::getline(table, line);) {
    const auto first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string names = "," + line.substr(first + 1, second - first - 1) + ",";
    if (names.find("," + controller + ",") != std::string::npos) return line.substr(second + 1);
  }
  return "";
}

HostMemory read_host_memory() {
  const std::string table = kernel_text("/proc/meminfo");
  HostMemory memory = {.total = memory_called(table, "MemTotal"),
                       .free = memory_called(table, "MemAvailable"),
                       .swap = memory_called(table, "SwapTotal")};
  const std::string second = "/sys/fs/cgroup" + path_of_cgroup("");
  const std::string first = "/sys/fs/cgroup/memory" + path_of_cgroup("memory");
  for (const auto& [limit_file, use_file] :
       {std::pair(second + "/memory.max", second + "/memory.current"),
        std::pair(first + "/memory.limit_in_bytes", first + "/memory.usage_in_bytes")}) {
    const std::int64_t limit = number_in(limit_file), use = number_in(use_file);
    if (limit <= 0 || use < 0 || limit >= memory.total) continue;
    memory.total = limit;
    memory.free = std::min(memory.free, std::max<std::int64_t>(0, limit - use));
  }
  return memory;
}

}  // namespace fleetrun
