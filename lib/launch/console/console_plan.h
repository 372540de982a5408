// What the console shows of which local rank, and whose stderr has a log of its own. Decided from options only.
#pragma once
#include <vector>

#include "launch/cli/launch_options.h"

namespace fleetrun::launch {

enum class LogStream { both, out, err };  // both: stdout and stderr in one log

struct ShownLog {
  int local_rank = 0;
  LogStream stream = LogStream::both;
  bool tagged = false;  // by --tee: with its prefix

  bool operator==(const ShownLog&) const = default;
};

struct ConsolePlan {
  std::vector<ShownLog> logs;  // in the order of the ranks
  std::vector<bool> apart;     // of each local rank: stderr goes to workerlog.N.err

  bool shows_many() const;  // ranks
};

// Throws Error(usage) when --console lists ranks that the run does not have.
ConsolePlan plan_console(const LaunchOptions& options, int local_size);

}  // namespace fleetrun::launch
