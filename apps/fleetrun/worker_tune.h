// One rank of fleetrun tune.
#pragma once
#include <string>

#include "base/run/progress_page.h"
#include "comm/make_communicator.h"
#include "runtime/training/tuning/step_timer.h"

namespace fleetrun {

// `request` is a text of write_tune_request(). Rank 0 writes tune.json into the log folder.
void run_tune(const std::string& request, const runtime::JobWith& job_with, comm::World& world,
              ProgressPage& page);

}  // namespace fleetrun
