// One rank of fleetrun eval.
#pragma once
#include <string>

#include "base/run/progress_page.h"
#include "comm/make_communicator.h"
#include "job/parse_job.h"

namespace fleetrun {

// Rank 0 publishes the report in `folder`, with the job if `fleetrun eval` has made its file. For the launcher, it also writes eval.json and
// eval.txt into the log folder; without one, it prints the report.
void run_eval(const std::string& folder, const std::string& job_file, const job::ParsedJob& job,
              comm::World& world, ProgressPage& page);

}  // namespace fleetrun
