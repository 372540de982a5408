// One rank of fleetrun eval.
#pragma once
#include <string>

#include "base/run/progress_page.h"
#include "comm/make_communicator.h"
#include "job/spec/job_spec.h"

namespace fleetrun {

// Rank 0 writes the report into `folder`. For the launcher, it also writes eval.json and eval.txt into the log folder; without one, it prints
// the report.
void run_eval(const std::string& folder, const job::JobSpec& job, comm::World& world, ProgressPage& page);

}  // namespace fleetrun
