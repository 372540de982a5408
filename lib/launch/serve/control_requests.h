// The requests that a running fleetrun accepts at its socket, and its answers: JSON, one line each.
#pragma once
#include <optional>
#include <string>

#include "base/json/json_value.h"
#include "launch/cli/flags/rank_set.h"
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
  const Attempt& attempt;  // the present one
  const ExitReport& report;

  // {"do": "ps"}, {"do": "stop", "now": false} or {"do": "signal", "signal": 10, "ranks": "0,3-7"}; no ranks: all.
  // Also {"do": "log"} (log_pieces.h) and {"do": "figures"} (figures_json.h), for the first node of a run.
  // The answer to any other request is {"error": "..."}.
  std::string answer(const std::string& request, const std::string& sender) const;
};

// What "ps" answers. `ranks`: a list of their descriptions.
JsonValue run_json(const ExitReport& report, int attempt, const JsonValue& ranks);

JsonValue refusal(const std::string& why);

// The first of the wanted ranks outside `least` to `most`.
std::optional<int> rank_beyond(const RankSet& wanted, int least, int most);

}  // namespace fleetrun::launch
