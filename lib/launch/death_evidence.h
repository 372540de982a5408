// Why a rank died, beyond its exit status: what the kernel, the disk and the rank's own files tell.
#pragma once
#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "launch/exit_status.h"

namespace fleetrun::launch {

// How often the kernel has ended processes of our memory cgroup for want of memory, and its limit.
struct MemoryCgroup {
  std::string folder;  // "" when there is none
  std::uint64_t kills = 0;
  std::uint64_t limit = 0, peak = 0;  // bytes; limit 0: none
};
MemoryCgroup read_memory_cgroup();

struct DeathScene {  // what is looked at
  int rank = 0;
  pid_t pid = -1;
  ExitStatus status;
  std::string log;                                // files
  std::string error_file;                         // as TORCHELASTIC_ERROR_FILE names it
  std::vector<std::string> last_lines;            // of the log
  MemoryCgroup memory_before;                     // as the run began
  std::chrono::system_clock::time_point started;  // the rank
};

struct DeathEvidence {
  bool out_of_memory = false;
  std::string exception;           // of Python: "ValueError: ..."
  std::string exception_place;     // "train.py:12, in main"
  std::vector<std::string> facts;  // one sentence each
};

bool is_disk_full(const std::string& path);  // less room than a page of log takes

DeathEvidence gather_evidence(const DeathScene& scene);

// The exception at the end of the last Python traceback in these lines, and the innermost place that it names.
void find_traceback(const std::vector<std::string>& lines, DeathEvidence& evidence);
// What torch.distributed.elastic's @record wrote: the exception and its place.
void read_error_file(const std::string& text, DeathEvidence& evidence);
// Of the core dump that a process which was started then left by this pattern of core(5), when that is a plain name; "": none.
std::string find_core(std::string pattern, pid_t pid, std::chrono::system_clock::time_point started);
// The line of the kernel's log that tells of the end of `pid` for want of memory; "" when there is none.
std::string find_oom_kill(const std::string& kernel_log, pid_t pid);

}  // namespace fleetrun::launch
