// What /proc says about one process. Facts, no decisions; of a process that is gone there are none.
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace fleetrun::launch {

std::string read_kernel_file(const std::string& path);  // of /proc or a cgroup; "" when it cannot be read

struct ProcessStat {
  char state = '?';  // R, S, D, T, t, Z as in proc(5)
  pid_t parent = 0;
  std::uint64_t cpu_ticks = 0;  // of it and of its ended children; 100 a second
};

std::optional<ProcessStat> parse_process_stat(const std::string& text);  // of /proc/PID/stat
std::optional<ProcessStat> read_process_stat(pid_t pid);

// The bytes that a process and its ended children have read and written: files, pipes, terminals; of /proc/PID/io.
std::uint64_t parse_process_io(const std::string& text);
std::uint64_t read_process_io(pid_t pid);  // 0 where we may not look

std::vector<pid_t> list_process_tree(pid_t root);  // itself first

}  // namespace fleetrun::launch
