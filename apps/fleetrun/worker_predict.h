// fleetrun-worker --predict: what `fleetrun predict` becomes.
#pragma once
#include <string>
#include <vector>

namespace fleetrun {

// `arguments`: REQUEST JOB MODEL IMAGE|FOLDER|-..., where JOB may be empty. Prints the answers to stdout, and a line for each image that
// cannot be read to stderr. Throws Error.
void run_predict(const std::vector<std::string>& arguments);

}  // namespace fleetrun
