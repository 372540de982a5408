// `fleetrun render`: the batch file or manifest of a run.
#pragma once
#include <string>
#include <vector>

#include "launch/render/batch_run.h"

namespace fleetrun::launch {

// `words` are the flags of the run, its program and the arguments of that. Reads the job file, and checks it. Throws Error(usage) for an
// unknown target and for flags that make no sense there, Error(missing|config) for the job file.
std::string render(const std::string& target, const RenderFlags& own, const std::vector<std::string>& words);

}  // namespace fleetrun::launch
