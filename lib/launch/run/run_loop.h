// One run, from its log folder to its report. The loop waits for the next event, asks the Supervisor what to do about it, and does it.
#pragma once
#include <functional>
#include <string_view>

#include "launch/console/console.h"
#include "launch/logs/log_disk.h"
#include "launch/logs/log_folder.h"
#include "launch/loop/event_loop.h"
#include "launch/report/report.h"
#include "launch/run/hang_sampler.h"
#include "launch/run/roll_call.h"
#include "launch/run/run_display.h"
#include "launch/run/run_plan.h"
#include "launch/run/runtime_support.h"
#include "launch/serve/control_server.h"
#include "launch/serve/prometheus_exporter.h"
#include "launch/supervise/event_queue.h"
#include "launch/supervise/process_group.h"
#include "launch/supervise/signal_watch.h"
#include "launch/supervise/supervisor.h"

namespace fleetrun::launch {

// The exit code of the run, whose report is written. `front_fd` reaches its end when the front process is gone.
// Throws Error when the run cannot begin.
int run_until_done(const RunPlan& plan, int front_fd);

// It has more than ten members because the parts of a run meet here. Each part lives as long as the run, knows at most the parts before
// it, and says what it notices by an event in the queue.
class RunLoop {
 public:
  // All outlive it.
  RunLoop(const RunPlan& plan, int front_fd, const LogFolder& logs, ExitReport& report);
  void run();  // to its end; what is known of it stands in the report, which is written

 private:
  std::function<void(std::string_view line)> say();
  void watch_front(int front_fd);
  void begin_ticks();
  void look_for_hang();

  void perform(const Actions& actions);
  void begin_attempt(int number);
  void end_attempt(Clock::duration delay);
  void end();

  void report_attempt();
  void try_to_write_report();
  Patience patience();

  const RunPlan& plan_;
  const LogFolder& logs_;
  ExitReport& report_;

  EventLoop loop_;
  EventQueue events_{loop_};
  Console console_;
  RuntimeSupport support_;

  Supervisor supervisor_;  // decides
  ProcessGroup group_;     // does
  SignalWatch signals_;
  const RunState state_;  // for those who read
  Attempt attempt_;       // the present one

  HangSampler hangs_;
  RollCall roll_call_;
  RunDisplay display_;
  LogDisk disk_;
  ControlServer control_;
  PrometheusExporter metrics_;
};

}  // namespace fleetrun::launch
