// Why a rank died, beyond its exit status: what the kernel, the disk and the rank's own files know.
#pragma once
#include <sys/resource.h>
#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "launch/process/exit_status.h"

namespace fleetrun::launch {

// How often the kernel has ended processes of our memory cgroup for want of memory, and its limit.
struct MemoryCgroup {
  std::string folder;  // "" when there is none
  std::uint64_t kills = 0;
  std::uint64_t limit = 0, peak = 0;  // bytes; limit 0: none
  double read_at = 0;                 // kernel_log_time()
};
MemoryCgroup read_memory_cgroup();

struct DeathScene {  // where to look
  int rank = 0;
  pid_t pid = -1;
  ExitStatus status;
  std::string origin;                             // of the signal that ended it, when it came through us
  std::string script;                             // of Python, which the rank runs; "": another program
  std::string log;                                // its file
  std::string log_trouble;                        // why_logs_lose_lines()
  std::string error_file;                         // the content of TORCHELASTIC_ERROR_FILE
  std::string log_end;                            // the end of the log
  std::size_t late = 0;                           // bytes of it that the log did not have yet at the death
  MemoryCgroup memory_before;                     // as the attempt began
  std::chrono::system_clock::time_point started;  // the rank
};

struct DeathEvidence {
  bool out_of_memory = false;
  std::string exception;           // what the log or the error file names as the cause: "ValueError: ..."
  std::string exception_place;     // "train.py:12, in main"
  std::vector<std::string> facts;  // one sentence each
};

DeathEvidence gather_evidence(const DeathScene& scene);

// What torch.distributed.elastic's @record wrote: the exception and its place.
void read_error_file(const std::string& text, DeathEvidence& evidence);
// Seconds, nearly by the clock that stamps the lines of the kernel's log.
double kernel_log_time();
// A process whose end may be told in the kernel's log.
struct KernelLogSubject {
  pid_t pid = -1;
  std::string pid_namespace;  // in which it has this number, as /proc/self/ns/pid names it
  double since = 0;           // by kernel_log_time(): earlier lines are about others that had the number
};
// Whom the kernel has killed for lack of memory since the attempt began.
struct OomKills {
  std::string line;           // of the kernel's log, about the subject; "": none
  std::string line_of_other;  // likewise, the last about another process
  std::uint64_t counted = 0;  // of our memory cgroup
};
// What the log says. The kernel uses the process numbers of its first namespace. A line without a time could be about another
// process that had the number.
OomKills find_oom_kills(const std::string& kernel_log, const KernelLogSubject& subject);
// Whether lack of memory ended the scene's rank. The counter does not say whom the kernel killed: it decides only when nothing
// else explains the end. A shell ends with 137 when the program below it was killed.
bool is_out_of_memory(const DeathScene& scene, const OomKills& kills);
// Of the core dump that a process which was started then left by this pattern of core(5), when that is a plain name; "": none.
std::string find_core(std::string pattern, pid_t pid, std::chrono::system_clock::time_point started);
// One that find_core found. `limit`: RLIMIT_CORE of the rank, in bytes.
std::string describe_core(const std::string& path, rlim_t limit);
// When find_core finds none.
std::string describe_missing_core(const std::string& pattern, rlim_t limit);

}  // namespace fleetrun::launch
