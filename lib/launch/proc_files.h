// What /proc says about one process. Facts, no decisions; of a process that is gone there are none.
#pragma once
#include <sys/stat.h>
#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "launch/clock.h"

namespace fleetrun::launch {

std::string read_kernel_file(const std::string& path);  // of /proc or a cgroup; "" when it cannot be read

struct ProcessStat {
  char state = '?';  // R, S, D, T, t, Z as in proc(5)
  pid_t parent = 0;
  std::uint64_t cpu_ticks = 0;  // of it and of its ended children; 100 a second
};

std::optional<ProcessStat> parse_process_stat(const std::string& text);  // of /proc/PID/stat
std::optional<ProcessStat> read_process_stat(pid_t pid);

std::vector<pid_t> list_process_tree(pid_t root);  // itself first

// Seconds since the file was last written to, or since `start` when that is less or nobody can know: the file has the time
// of day, which may have been set since.
double seconds_since_write(const struct stat& file, const Moment& start);

}  // namespace fleetrun::launch
