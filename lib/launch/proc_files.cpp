#include "launch/proc_files.h"

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

std::uint64_t parse_process_io(const std::string& text) {
  std::istringstream lines(text);
  std::string name;
  std::uint64_t total = 0;
  for (std::uint64_t bytes = 0; lines >> name >> bytes;)
    if (name == "rchar:" || name == "wchar:") total += bytes;
  return total;
}

std::uint64_t read_process_io(pid_t pid) {
  return parse_process_io(read_kernel_file(fmt::format("/proc/{}/io", pid)));
}

std::vector<pid_t> list_process_tree(pid_t root) {
  std::vector<pid_t> tree = {root};
  for (std::size_t i = 0; i < tree.size(); ++i) {
    std::istringstream children(read_kernel_file(fmt::format("/proc/{0}/task/{0}/children", tree[i])));
    for (pid_t pid = 0; children >> pid;) tree.push_back(pid);
  }
  return tree;
}

}  // namespace fleetrun::launch
