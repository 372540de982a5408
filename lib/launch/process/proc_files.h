// What /proc says about one process. Facts, no decisions; of a process that is gone there are none. A /proc that was mounted
// outside our process namespace (unshare --pid without --mount-proc) gives processes other numbers than we: these functions
// take and give ours.
#pragma once
#include <sys/stat.h>
#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "launch/loop/clock.h"

namespace fleetrun::launch {

std::string read_kernel_file(const std::string& path);  // of /proc or a cgroup; "" when it cannot be read

// "/proc/7/stat"; "" when /proc does not show the process.
std::string process_path(pid_t pid, const std::string& name);
std::vector<std::string> read_thread_statuses(
    pid_t pid);              // the text of /proc/PID/task/TID/status of each thread
bool shows_own_processes();  // /proc is there, and those that we can see are in it

// From a text of /proc/PID/status: the process's numbers, in the namespace of /proc first, in its own last.
std::vector<pid_t> numbers_in(const std::string& proc_status);

std::vector<pid_t> list_children();  // of this process, zombies included; those of /proc

std::string describe_process(pid_t pid);  // "pid 7 (gzip)"; "pid 7" when /proc does not show it

// Of the environment with which the process began its program; "" where it is not set, and where we may not look.
std::string read_variable(pid_t pid, const std::string& name);

struct ProcessStat {
  char state = '?';  // R, S, D, T, t, Z as in proc(5)
  pid_t parent = 0;
  std::chrono::milliseconds cpu_time{0};  // of it and of its ended children, by the kernel's ticks of 10 ms
  std::chrono::milliseconds own_cpu_time{0};  // without the children
  std::chrono::milliseconds started{0};       // after the start of the machine, by the same ticks
};

std::optional<ProcessStat> parse_process_stat(const std::string& text);  // of /proc/PID/stat
std::optional<ProcessStat> read_process_stat(pid_t pid);
double read_own_cpu_seconds(pid_t pid);  // also of a zombie; 0 where /proc does not show it

std::uint64_t read_peak_kib(
    pid_t pid);  // most memory that it held (VmHWM); 0 of a zombie, and where /proc does not show it

// The bytes that a process and its ended children have read and written: files (also mapped ones, as far as the disk was read), pipes,
// terminals; of /proc/PID/io. What they receive with recv(2) does not count there.
struct ProcessIo {
  std::uint64_t read = 0, written = 0;
};
ProcessIo parse_process_io(const std::string& text);
ProcessIo read_process_io(pid_t pid);  // zeros where we may not look

std::vector<pid_t> list_process_tree(pid_t root);  // itself first

// Seconds since the file was last written to, or since `start` when that is less or nobody can know: the file has the time
// of day, which may have been set since.
double seconds_since_write(const struct stat& file, const Moment& start);

}  // namespace fleetrun::launch
