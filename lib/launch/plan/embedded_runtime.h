// What the launcher has to know about ranks that run our own worker program. It comes from a job file, or from a
// subcommand that starts such ranks.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "job/parse_job.h"
#include "job/spec/job_spec.h"

namespace fleetrun::launch {

struct EmbeddedRuntime {
  job::DeviceChoice device = job::DeviceChoice::automatic;
  std::map<std::string, std::string> environment;  // "env" of the job file
  std::optional<int> threads;                      // "train.threads"
  std::vector<std::string> notes;                  // about the job, for the user
  std::vector<job::KeyValue> values = {};          // of each key, for the page of the run
  std::string job_text = {};                       // of the job file; "": there is none
};

}  // namespace fleetrun::launch
