// A run that answers a subcommand: its ranks leave files in the log folder for the one who asked.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "base/error/error.h"
#include "base/run/answer_files.h"
#include "base/system/environment.h"
#include "launch/cli/flags/launch_options.h"
#include "launch/cli/flags/read_flags.h"
#include "launch/schedulers/allocation.h"

namespace fleetrun {

// For a subcommand that finds a reason not to begin its run: launch::tell_other_nodes() with the flags of the run. Throws nothing.
void tell_nodes_of_run(const launch::FoundFlags& found, const Environment& environment, const Error& error);

class AnsweringRun {
 public:
  // `found`: the flags of the run among those of the subcommand, and the job file with its changes. `flag` tells the ranks what to do, and
  // `name` is that of a temporary log folder, which is used if the user named none. `answers`: what rank 0 may leave. Throws
  // Error(usage|create), also when something that fleetrun did not write has the name of an answer.
  AnsweringRun(const launch::FoundFlags& found, const std::string& flag, const std::string& name,
               const std::vector<AnswerFile>& answers, const Environment& environment);

  ~AnsweringRun();  // removes a temporary log folder in which there is nothing, because no rank started
  AnsweringRun(const AnsweringRun&) = delete;
  AnsweringRun& operator=(const AnsweringRun&) = delete;

  // Starts the ranks as a run of the job does, and returns the exit code. `silent`: nothing of what they print is shown.
  int run(bool silent);

  // What rank 0 left in the log folder, with its mark. Nothing: rank 0 is on another node, which prints it.
  std::optional<std::string> answer(const AnswerFile& file) const;

  // Removes a temporary log folder. Without this call it stays, because a report of a failure names its files.
  void clean_up() const;
  void clean_up_if_stopped() const;  // the same if somebody stopped the run by a signal

 private:
  const Environment& environment_;
  std::vector<std::string> words_;
  std::optional<launch::Allocation> allocation_;
  launch::LaunchOptions options_;
  bool temporary_ = false;
  std::string folder_;
};

}  // namespace fleetrun
