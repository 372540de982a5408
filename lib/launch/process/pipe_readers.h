// Processes that ranks have left, and that read a pipe by their standard input, such as the gzip of `exec > >(gzip > log.gz)`. They write the
// rest of what a rank has written there when they see the end of the pipe, and lose it if SIGTERM ends them before.
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <set>
#include <unordered_map>
#include <vector>

#include "launch/loop/clock.h"

namespace fleetrun::launch {

// By its standard input, and not the pipe that this process reads, too: no rank writes there.
bool reads_pipe(pid_t pid);

// Those of `processes` that only serve one of `printers`: they read from a pipe what it prints. So they must not end before it. A program that
// compresses a pipe serves whoever prints there.
std::set<pid_t> filters_among(const std::vector<pid_t>& processes, const std::set<pid_t>& printers);

struct ReaderPatience {
  TimePoint latest;
  std::function<void(Clock::duration time)> pause;  // between two looks
  std::function<bool()> interrupted;
  std::function<void(const std::vector<pid_t>& readers)>
      tell;  // called once, if the wait is long enough to be noticed
};

class PipeReaders {
 public:
  static constexpr auto kMostIdle = std::chrono::seconds(2);  // as while a server confirms an upload

  // Waits until no reader among the processes that are left to this one is at work: it has bytes or the end of the pipe to read, and has worked in
  // the last kMostIdle, also during an earlier wait. Those in `known` are not left. A process may be about to become a reader if it has just begun.
  // Returns the readers that are still there.
  std::vector<pid_t> wait(const std::vector<pid_t>& known, const ReaderPatience& patience);

 private:
  struct Seen {
    std::uint64_t work = 0;  // bytes and milliseconds
    TimePoint changed;
  };
  bool has_worked(pid_t pid, TimePoint now);

  std::unordered_map<pid_t, Seen> seen_;
  bool has_told_ = false;
};

}  // namespace fleetrun::launch
