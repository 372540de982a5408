// Everything that a run shows on the terminal, from the first line to the last.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "launch/console/console.h"
#include "launch/console/progress_line.h"
#include "launch/logs/log_folder.h"
#include "launch/nodes/node_session.h"
#include "launch/plan/worker_plan.h"
#include "launch/report/report.h"
#include "launch/run/attempt_logs.h"
#include "launch/run/remote_console.h"
#include "launch/run/run_plan.h"
#include "launch/run/wait_notice.h"
#include "launch/serve/node_figures.h"
#include "launch/supervise/run_state.h"

namespace fleetrun::launch {

class RunDisplay {
 public:
  struct Sources {  // all outlive it
    const RunPlan& plan;
    const LogFolder& logs;
    RunState state;
    Console& console;
    NodeSession* nodes = nullptr;  // null: this node is alone
    const NodeFigures& others;
  };
  RunDisplay(EventLoop& loop, const Sources& sources);

  // How often to call draw(); none: the run has no progress line.
  std::optional<Clock::duration> draw_interval() const { return progress_.interval(); }
  void draw() { progress_.draw(); }

  void begin_run(const std::vector<WorkerSpec>& workers);
  void begin_attempt(int attempt, const std::string& host);
  // Prints messages about the event. Call it before the actions that follow from the event.
  void show(const Event& event);
  // Shows the rest of the logs, and how the attempt or the run ended. False: the reader of our output did not read all
  // of it.
  bool show_end(const ExitReport& report, const Patience& patience);
  void end_run(const ExitReport& report, const Patience& patience);

 private:
  std::vector<Progress> progress_of_all() const;

  Sources sources_;
  ProgressLine progress_;
  AttemptLogs attempt_logs_;
  RemoteConsole remote_console_;
  WaitNotice waits_;
};

}  // namespace fleetrun::launch
