// Everything that is decided about a run before it starts.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/system/environment.h"
#include "launch/cli/flags/launch_options.h"
#include "launch/nodes/node_messages.h"
#include "launch/plan/cluster.h"
#include "launch/plan/embedded_runtime.h"
#include "launch/plan/membership.h"
#include "launch/plan/program.h"
#include "launch/plan/stop_plan.h"

namespace fleetrun::launch {

struct RunPlan {
  const LaunchOptions& options;
  const Environment& environment;
  const Program& program;
  const std::optional<EmbeddedRuntime>& embedded;  // none: the ranks run another program
  const std::map<int, Program>& wrapped;           // of ranks with --debug_rank
  ClusterSpec cluster;                             // changes in a run over several nodes
  const std::vector<std::string>& warnings;        // of warn_before_start()
  std::string folder = {};  // in which fleetrun started; it may be removed during the run
  bool quiet = false;       // no banner
  std::optional<Membership> members = std::nullopt;  // none: this node is alone
  Terms terms = {};                                  // what must be equal on the other nodes
  bool saves_when_stopped = true;                    // SIGTERM loses no work of the ranks, as far as we know
  StopPlan stop = {};
  std::string order_file = {};  // with the key, which the nodes that we start read before they join; "": none
  int starter_news = -1;  // tells of problems of the other nodes that we start; -1: somebody else starts them
};

}  // namespace fleetrun::launch
