// One run from its first attempt to its report: everything that lives as long as the run, and what happens between
// the parts.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "base/progress_page.h"
#include "launch/console/console.h"
#include "launch/console/console_view.h"
#include "launch/console/progress_line.h"
#include "launch/logs/folder_watch.h"
#include "launch/logs/log_disk.h"
#include "launch/logs/log_folder.h"
#include "launch/logs/log_times.h"
#include "launch/loop/event_loop.h"
#include "launch/report/report.h"
#include "launch/run/attempts.h"
#include "launch/run/hang_monitor.h"
#include "launch/run/roll_caller.h"
#include "launch/run/run_node.h"
#include "launch/run/runtime_support.h"
#include "launch/run/wait_notice.h"
#include "launch/serve/control_requests.h"
#include "launch/serve/control_server.h"
#include "launch/serve/prometheus_exporter.h"
#include "launch/supervise/process_group.h"

namespace fleetrun::launch {

class Supervision {
 public:
  // All outlive it. `front_fd` reaches its end when the front process is gone.
  Supervision(const NodeRun& run, int front_fd, const LogFolder& logs, ExitReport& report);

  void run();  // to its end; what is known of it stands in the report, which is written

 private:
  std::unique_ptr<RuntimeSupport> make_support();
  ProcessGroupOptions group_options(int front_fd);
  const std::vector<ProgressPagePtr>& pages() const { return support_ ? support_->pages() : no_pages_; }
  Patience patience();
  Attempt prepare(int number);
  std::unique_ptr<ConsoleView> view_logs(int attempt);
  void look_at_logs();
  void observe(const Event& event, const Verdict& verdict);
  void report_present_attempt();
  std::string limit_behind_failure() const;
  void end_attempt(Clock::duration delay);
  void try_to_write_report();
  void show_end();

  const NodeRun& run_;
  const LogFolder& logs_;
  ExitReport& report_;
  const std::vector<ProgressPagePtr> no_pages_;
  EventLoop loop_;
  Console console_;
  std::unique_ptr<RuntimeSupport> support_;
  Attempts attempts_;
  ProgressLine progress_;
  LogTimes times_;
  LogDisk disk_;
  FolderWatch folder_;
  ProcessGroup group_;
  WaitNotice waits_;
  RollCaller roll_;
  HangMonitor hangs_;
  RunControl control_;
  ControlServer control_server_;
  PrometheusExporter metrics_;
  std::vector<std::unique_ptr<ConsoleView>> views_;  // of every attempt: the loop may still call earlier ones
};

}  // namespace fleetrun::launch
