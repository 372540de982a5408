// The logs of the present attempt while they grow: shows on the terminal those that the user wants to see, and records how long each was when.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "launch/console/console.h"
#include "launch/console/console_view.h"
#include "launch/logs/folder_watch.h"
#include "launch/logs/log_folder.h"
#include "launch/logs/log_times.h"
#include "launch/run/run_plan.h"

namespace fleetrun::launch {

class AttemptLogs {
 public:
  AttemptLogs(EventLoop& loop, const RunPlan& plan, const LogFolder& logs,
              Console& console);  // all outlive it

  void begin_attempt(int attempt, const std::string& host);  // its logs exist
  // Shows everything up to the present ends. False: the reader of our output did not take all of it.
  bool finish(const Patience& patience);

 private:
  std::vector<ConsoleSource> sources(int attempt, const std::string& host) const;
  void look();

  EventLoop& loop_;
  const RunPlan& plan_;
  const LogFolder& logs_;
  Console& console_;
  LogTimes times_;
  std::vector<std::unique_ptr<ConsoleView>> views_;  // of every attempt: the loop may still call earlier ones
  FolderWatch folder_;
};

}  // namespace fleetrun::launch
