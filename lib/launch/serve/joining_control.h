// The requests that fleetrun accepts at its socket while it waits for other nodes, and its answers (control_requests.h).
// No rank runs yet.
#pragma once
#include <string>

#include "launch/nodes/node_session.h"
#include "launch/report/report.h"

namespace fleetrun::launch {

struct JoiningControl {  // both outlive it
  NodeSession& nodes;
  const ExitReport& report;

  // {"do": "ps"}: no ranks, and "waiting" names the missing nodes. {"do": "stop"} ends the wait. {"do": "signal"}:
  // reached no rank, and "waiting" says why. The answer to any other request is {"error": "..."}.
  std::string answer(const std::string& request) const;
};

}  // namespace fleetrun::launch
