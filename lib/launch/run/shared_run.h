// This node's side of a run over several nodes: agrees with the other nodes on when an attempt begins and how it ended.
// No rank runs here while it does that.
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

// How the whole run ended, as the first node decided.
WholeRun whole_run(const Over& over, const NodeSession& nodes);

// The failure with which this node leaves the run.
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
    NodeSession::Say say;                     // to the user
    bool is_agent = false;                    // another fleetrun started this one
  };
  explicit SharedRun(const Sources& sources) : sources_(sources), suspended_(sources.nodes.was_suspended()) {}

  // Sends the ports that this node holds, waits for all nodes, and fills in the endpoints of all nodes. Throws Error
  // when a node cannot start; then `report` says how the run ended. Returns nothing when the attempt may begin, and
  // the attempt to prepare instead when a node was lost meanwhile.
  std::optional<Again> wait_for_nodes(int attempt, HeldPorts& ports, ExitReport& report);

  // Call it after the Supervisor has handled an event. Tells the first node what concerns all nodes: a failure here, for which it ends the
  // ranks of all nodes, a signal, and the first rank that finished.
  void tell(const Event& event);

  // Sends what the ranks here do. The first node replies with what the ranks on other nodes do.
  void tell_signs(const SignsOfLife& signs) { sources_.nodes.tell_signs(signs); }
  const SignsOfLife& signs_elsewhere() const { return sources_.nodes.signs_elsewhere(); }

  // The ranks here have ended, and `report` describes that. Returns the next attempt of all nodes. None: the run is
  // over, and `report` now describes the end of the whole run.
  std::optional<Again> end_attempt(ExitReport& report);

  void leave(const Error& error, const ExitReport& report);  // this node cannot go on
  void finish() { sources_.nodes.finish(); }                 // call it when the run is over

 private:
  static void tell_all_of(const NodeFailure& failure, const NodeFailure& brief, WholeRun& whole);
  static void correct_cause(const NodeFailure& first, const std::optional<NodeFailure>& here,
                            ExitReport& report);
  FromFirst wait();
  void pass_on(const Event& event);
  bool note_request(const Event& event);
  void hurry(const Event& event);
  void say_what_ctrl_c_does(const Verdict& verdict, const Event& event);
  void note_suspension(const Event& event);
  void tell_signal(const Event& event);
  void tell_finish(const Event& event);
  void tell_departure();
  NodeFailure failure_here(const Verdict& verdict, const SharedTime& time) const;
  SharedTime time_of_failure() const;

  Sources sources_;
  bool suspended_;             // by Ctrl-Z on this node
  int attempt_ = 0;            // that runs, or that all nodes get ready for
  bool told_failure_ = false;  // in this attempt
  bool told_finish_ = false;   // sent that the first rank here finished
  bool has_ended_ = false;     // the ranks here have, and those of other nodes may not
  bool ending_ = false;        // this node knows that the attempt is ending
  bool asked_to_end_ = false;  // by a signal to this node, in this attempt
  TimePoint failed_at_;
  std::optional<EndedElsewhere> end_elsewhere_;  // of this attempt, after the ranks here had ended
};

}  // namespace fleetrun::launch
