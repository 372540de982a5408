// fleetrun plan: what the worker program prints, because it has the models.
#pragma once
#include <string>
#include <vector>

namespace fleetrun {

// `arguments`: a text of write_plan_request(), the job file, and what changes in it.
void run_plan(const std::vector<std::string>& arguments);

}  // namespace fleetrun
