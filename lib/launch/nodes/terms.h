// What all nodes of a run must have in common.
#pragma once
#include <string>

#include "launch/cli/flags/launch_options.h"
#include "launch/nodes/node_messages.h"
#include "launch/plan/cluster.h"

namespace fleetrun::launch {

// The only term of `fleetrun doctor` and of --preflight, which start no ranks, and its values.
inline constexpr const char *kDoctorTerm = "fleetrun doctor", *kDoctor = "yes", *kPreflight = "preflight";

// The version, the device, the flags that concern the whole run, and the program with its arguments. Of a job file, not
// its path but each value: nodes may keep it in different folders. `job_text`: the job file's content; "" for other
// programs.
Terms terms_of(const LaunchOptions& options, const ClusterSpec& cluster, const std::string& job_text);

// A value of the terms for people: without the secrets among the variables of a job and of flags such as --env.
std::string shown_term(const std::string& name, const std::string& value);

}  // namespace fleetrun::launch
