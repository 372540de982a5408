// Watches the logs of the present attempt: shows the logs that the user wants to see on the terminal, and records the
// length of each log over time.
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

  void begin_attempt(int attempt, const std::string& host);  // call it when the logs exist
  std::string bar() const;  // the progress bar that a rank draws now, on a terminal; "": none
  // Shows everything written so far. False: the reader of our output did not read all of it.
  bool finish(const Patience& patience);

 private:
  std::vector<ConsoleSource> sources(int attempt, const std::string& host) const;
  void look();
  void warn_of_loss(const std::string& log);

  EventLoop& loop_;
  const RunPlan& plan_;
  const LogFolder& logs_;
  Console& console_;
  LogTimes times_;
  std::vector<std::unique_ptr<ConsoleView>> views_;  // of all attempts: the loop may call earlier ones
  FolderWatch folder_;
  bool warned_ = false;
};

}  // namespace fleetrun::launch
