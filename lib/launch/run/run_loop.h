// The event loop of one run: waits for the next event, asks the Supervisor what to do, and does that.
#pragma once
#include <functional>
#include <optional>
#include <string_view>

#include "launch/console/console.h"
#include "launch/logs/log_disk.h"
#include "launch/logs/log_folder.h"
#include "launch/loop/event_loop.h"
#include "launch/nodes/node_session.h"
#include "launch/plan/port_guard.h"
#include "launch/report/report.h"
#include "launch/run/hang_sampler.h"
#include "launch/run/held_deaths.h"
#include "launch/run/last_words.h"
#include "launch/run/roll_call.h"
#include "launch/run/run_display.h"
#include "launch/run/run_plan.h"
#include "launch/run/runtime_support.h"
#include "launch/run/shared_run.h"
#include "launch/run/straggler_watch.h"
#include "launch/run/write_page.h"
#include "launch/serve/control_server.h"
#include "launch/serve/node_figures.h"
#include "launch/serve/prometheus_exporter.h"
#include "launch/serve/shared_control.h"
#include "launch/supervise/event_queue.h"
#include "launch/supervise/process_group.h"
#include "launch/supervise/signal_watch.h"
#include "launch/supervise/supervisor.h"

namespace fleetrun::launch {

// The surroundings of a run: the loop, the control socket, the front process, the other nodes.
struct RunWorld {
  EventLoop& loop;
  ControlServer& control;
  int front_fd = -1;
  NodeSession* nodes = nullptr;    // null: this node is alone
  ClusterSpec* cluster = nullptr;  // that of the plan, which changes when nodes come or go; null: it does not
};

// Many members, because all parts of a run meet here. Each part lives as long as the run, knows at most the parts above
// it, and pushes what it notices into the queue as an event.
class RunLoop {
 public:
  // All outlive it.
  RunLoop(const RunPlan& plan, const RunWorld& world, LogFolder& logs, ExitReport& report);
  void run();  // until the run is over; fills the report and writes it

 private:
  std::function<void(std::string_view line)> say();
  void attend();  // handles events until the attempt is over
  void handle(const Event& event);
  bool postpone_after_deaths(const Event& event);
  void watch_front(int front_fd);
  void connect_to_nodes(NodeSession& nodes);
  RunControl run_control();
  MetricsSource metrics_source() const;
  void answer_requests();
  void begin_ticks();
  void look_for_hang();

  void perform(const Actions& actions);
  // Returns the number of the attempt that all nodes are ready for: a later one if nodes were lost meanwhile.
  int hold_ports_and_wait_for_nodes(int number);
  void take_places();  // the numbers of nodes and ranks in the next attempt
  void become_first();
  void look_at_others();  // if somebody wants to see their figures
  RankSpan own_span() const;
  bool was_started_by_first_node() const;
  void begin_attempt(int number);
  void end_attempt(Clock::duration delay);
  bool replace_removed_log_folder();
  void end();

  bool start_again_with_others();
  void show_end_of_attempt();
  // Archives this attempt and announces the next one. `restarts`: how many there will have been when that begins.
  void archive_and_announce(Clock::duration delay, int restarts);

  void report_attempt();
  void try_to_write_report();
  void try_to_write_page();
  Patience patience(Clock::duration time);
  Patience patience_in_all(Clock::duration time);  // however much the reader takes meanwhile
  bool front_is_gone() const;
  void end_processes();

  const RunPlan& plan_;
  LogFolder& logs_;
  ExitReport& report_;
  const RunWorld world_;
  int restarts_ = 0;  // before the present attempt

  EventLoop& loop_;
  EventQueue events_{loop_};
  Console console_;
  RuntimeSupport support_;

  Supervisor supervisor_;  // decides
  ProcessGroup group_;     // starts and ends the processes, and notices when ranks end
  SignalWatch signals_;    // notices signals to fleetrun
  const RunState state_;   // read-only view for other parts
  HeldPorts ports_;        // for the next attempt
  Attempt attempt_;        // the present attempt

  HangSampler hangs_;  // measures the ranks and asks the HangRules
  RollCall roll_call_;
  NodeFigures others_;  // figures of the ranks on other nodes
  LastWords last_words_;
  HeldDeaths deaths_;
  StragglerWatch stragglers_;
  RunDisplay display_;
  LogDisk disk_;
  ControlServer& control_;
  PrometheusExporter metrics_;
  LivePage page_;
  std::optional<SharedRun> shared_;  // set in a run over several nodes
  std::optional<SharedControl> shared_control_;
};

}  // namespace fleetrun::launch
