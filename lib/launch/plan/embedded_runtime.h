// What the launcher has to know of ranks that run our own worker program: a job file says it, or a part of fleetrun that starts them.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "job/job_spec.h"

namespace fleetrun::launch {

struct EmbeddedRuntime {
  job::DeviceChoice device = job::DeviceChoice::automatic;
  std::map<std::string, std::string> environment;  // "env" of the job file
  std::optional<int> threads;                      // "train.threads"
  std::vector<std::string> notes;                  // on the job, for people
};

}  // namespace fleetrun::launch
