// `fleetrun doctor`: examines the nodes on which a run would start. doctor.cpp is the table of contents of this room.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "base/system/environment.h"
#include "launch/cli/flags/launch_options.h"
#include "launch/doctor/own_facts.h"
#include "launch/plan/cluster.h"
#include "launch/plan/membership.h"

namespace fleetrun::launch {

enum class DoctorOutput { table, json, findings };  // findings: on stderr, each on a line

struct DoctorRequest {
  const LaunchOptions& options;
  const Environment& environment;
  const ClusterSpec& cluster;
  std::optional<Membership> members;  // none: this host alone
  std::string host;                   // name of this host
  ExaminedRun run;
  Clock::duration join_timeout;  // afterwards the examination begins without the missing nodes
  DoctorOutput output = DoctorOutput::table;
  int starter_news = -1;                              // as in RunPlan
  std::vector<std::string> possible_successors = {};  // as in NodeSessionOptions, for DoctorOutput::findings
};

// Prints what it finds: on the first node everything, on the others the findings. Returns 0, or the code of
// ErrorKind::temporary when something is wrong. Throws Error when the nodes cannot meet.
int run_doctor(const DoctorRequest& request);

}  // namespace fleetrun::launch
