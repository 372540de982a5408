// A run that answers a subcommand: its ranks leave files in the log folder for the one who asked.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "base/system/environment.h"
#include "launch/cli/flags/launch_options.h"
#include "launch/cli/flags/read_flags.h"
#include "launch/schedulers/allocation.h"

namespace fleetrun {

class AnsweringRun {
 public:
  // `found`: the flags of the run among those of the subcommand, and the job file with its changes. `flag` tells the ranks what to do, and
  // `name` is that of a temporary log folder, which is used if the user named none. Throws Error(usage|create).
  AnsweringRun(const launch::FoundFlags& found, const std::string& flag, const std::string& name,
               const Environment& environment);

  // Starts the ranks as a run of the job does, and returns the exit code. `silent`: nothing of what they print is shown.
  int run(bool silent);

  // What rank 0 left in the log folder under this name. Nothing: rank 0 is on another node, which prints it.
  std::optional<std::string> answer(const std::string& file) const;

  // Removes a temporary log folder. Without this call it stays, because a report of a failure names its files.
  void clean_up() const;

 private:
  const Environment& environment_;
  std::vector<std::string> words_;
  std::optional<launch::Allocation> allocation_;
  launch::LaunchOptions options_;
  bool temporary_ = false;
  std::string folder_;
};

}  // namespace fleetrun
