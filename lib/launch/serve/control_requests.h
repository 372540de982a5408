// What a running fleetrun can be asked through its socket, as JSON on one line, and what it answers.
#pragma once
#include <string>

#include "launch/logs/log_folder.h"
#include "launch/report/report.h"
#include "launch/supervise/event_queue.h"
#include "launch/supervise/process_group.h"
#include "launch/supervise/run_state.h"

namespace fleetrun::launch {

struct RunControl {  // all outlive it
  EventQueue& events;
  ProcessGroup& group;
  RunState state;
  const LogFolder& logs;
  const ExitReport& report;

  // {"do": "ps"}, {"do": "stop", "now": false} or {"do": "signal", "signal": 10, "ranks": "0,3-7"}; no ranks: all.
  // The answer to anything else is {"error": "..."}.
  std::string answer(const std::string& request, const std::string& sender) const;
};

}  // namespace fleetrun::launch
