// Looks for ranks that are slower than the others, on the node that knows all ranks of the run. Prints one line for each and adds
// it to the report, where `fleetrun ps` and the metrics read it.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "launch/nodes/node_session.h"
#include "launch/report/report.h"
#include "launch/run/run_plan.h"
#include "launch/serve/node_figures.h"
#include "launch/supervise/run_state.h"
#include "launch/supervise/straggler_rules.h"

namespace fleetrun::launch {

class StragglerWatch {
 public:
  struct Sources {  // all outlive it
    const RunPlan& plan;
    RunState state;
    const NodeFigures& others;
    NodeSession* nodes = nullptr;  // null: this node is alone
    std::function<void(std::string_view line)> say;
  };
  StragglerWatch(const Sources& sources, ExitReport& report);  // which outlives it

  // How often to call look(); none: this node does not look for stragglers.
  std::optional<Clock::duration> interval() const;
  void look(TimePoint now);
  void begin_attempt() { rules_.begin_attempt(); }

 private:
  std::string host_of(int rank) const;

  const Sources sources_;
  ExitReport& report_;
  StragglerRules rules_;
};

}  // namespace fleetrun::launch
