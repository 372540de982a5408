#include "launch/proc_files.h"

#include <algorithm>
#include <fstream>
#include <sstream>

#include <fmt/format.h>

namespace fleetrun::launch {

std::string read_kernel_file(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  if (file) text << file.rdbuf();
  return text.str();
}

// The name in parentheses may hold anything, so count from its end.
std::optional<ProcessStat> parse_process_stat(const std::string& text) {
  const auto name_end = text.rfind(')');
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream fields(text.substr(name_end + 1));
  ProcessStat stat;
  fields >> stat.state >> stat.parent;
  constexpr int kBetween = 9;  // pgrp to cmajflt
  std::string skipped;
  for (int i = 0; i < kBetween; ++i) fields >> skipped;
  for (int i = 0; i < 4; ++i) {  // utime, stime, cutime, cstime
    std::uint64_t ticks = 0;
    if (!(fields >> ticks)) return std::nullopt;
    stat.cpu_ticks += ticks;
  }
  return stat;
}

std::optional<ProcessStat> read_process_stat(pid_t pid) {
  return parse_process_stat(read_kernel_file(fmt::format("/proc/{}/stat", pid)));
}

std::vector<pid_t> list_process_tree(pid_t root) {
  std::vector<pid_t> tree = {root};
  for (std::size_t i = 0; i < tree.size(); ++i) {
    std::istringstream children(read_kernel_file(fmt::format("/proc/{0}/task/{0}/children", tree[i])));
    for (pid_t pid = 0; children >> pid;) tree.push_back(pid);
  }
  return tree;
}

double seconds_since_write(const struct stat& file, const Moment& start) {
  const auto written =
      std::chrono::seconds(file.st_mtim.tv_sec) + std::chrono::nanoseconds(file.st_mtim.tv_nsec);
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::clamp(std::chrono::duration<double>(now - written).count(), 0.0, seconds_since(start));
}

}  // namespace fleetrun::launch
