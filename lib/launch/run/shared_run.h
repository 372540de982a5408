// This node's side of a run over several nodes: agrees with the others when an attempt begins and how it ended. Meanwhile no rank runs here.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "base/error/error.h"
#include "launch/nodes/node_session.h"
#include "launch/plan/port_guard.h"
#include "launch/report/report.h"
#include "launch/run/runtime_support.h"
#include "launch/supervise/event_queue.h"
#include "launch/supervise/run_state.h"
#include "launch/supervise/supervisor.h"

namespace fleetrun::launch {

// Why this node leaves the run.
NodeFailure cannot_go_on(const NodeSession& nodes, const Error& error);

class SharedRun {
 public:
  struct Sources {  // all outlive it
    NodeSession& nodes;
    EventQueue& events;
    Supervisor& supervisor;
    RunState state;
    RuntimeSupport& support;
    const std::vector<std::string>& command;  // of a worker
  };
  explicit SharedRun(const Sources& sources) : sources_(sources) {}

  // Tells the ports that this node holds, waits for all nodes, and fills in the endpoints of all. Throws Error when one cannot start; then
  // `report` says how the run ended.
  void begin_attempt(int attempt, HeldPorts& ports, ExitReport& report);

  // To be called after each event, when the Supervisor knows it: what fails here ends the ranks of all nodes.
  void look_at(const Event& event);

  // What the ranks do, here and, as of the last time that we told, on the other nodes.
  void tell_signs(const SignsOfLife& signs) { sources_.nodes.tell_signs(signs); }
  const SignsOfLife& signs_elsewhere() const { return sources_.nodes.signs_elsewhere(); }

  // The ranks here have ended, and `report` says how they were and ended. The pause before the next attempt of all nodes; none: the run is over, and
  // `report` says how all of it ended.
  std::optional<Clock::duration> end_attempt(ExitReport& report);

  void leave(const Error& error);             // this node cannot go on
  void finish() { sources_.nodes.finish(); }  // the others know that the run is over

 private:
  FromFirst wait();
  void pass_on(const Event& event);
  void hurry(const Event& event);
  void tell_signal(const Event& event);
  void tell_finish(const Event& event);
  NodeFailure failure_here(const Verdict& verdict, const SharedTime& time) const;
  SharedTime time_of_failure() const;

  Sources sources_;
  bool told_failure_ = false;  // of this attempt
  bool told_finish_ = false;   // of its first rank
  bool ending_ = false;        // it, as this node knows
  TimePoint failed_at_;
};

}  // namespace fleetrun::launch
