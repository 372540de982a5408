// What the console shows of which local rank, and whose stderr has a log of its own. Decided from options only.
#pragma once
#include <optional>
#include <vector>

#include "launch/cli/flags/launch_options.h"

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
  std::vector<int> elsewhere;  // on the first node: ranks of other nodes, by their numbers in the run

  bool shows_many() const;  // ranks
};

// Throws Error(usage) when --console lists ranks that the run does not have.
ConsolePlan plan_console(const LaunchOptions& options, int local_size);

// One node of several. --console lists ranks of the whole run: the first node shows all of them, every other node its own. Without --console,
// and when fleetrun is called as torchrun, each node counts its own ranks from 0.
struct ConsoleNode {
  int first = 0, local_size = 1;  // its ranks
  std::optional<int> world;       // none: not known yet
  bool elastic = false;           // ranks that the run lacks now may come
};
ConsolePlan plan_console(const LaunchOptions& options, const ConsoleNode& node);

}  // namespace fleetrun::launch
