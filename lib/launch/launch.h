// Starts and supervises one distributed run. launch() in launch.cpp is the table of contents of this library.
#pragma once
#include <string>
#include <vector>

#include "base/system/environment.h"
#include "launch/cli/launch_options.h"

namespace fleetrun::launch {

// The exit code of the run. Throws Error when it cannot begin.
int launch(LaunchOptions options, const Environment& environment);

// The same for `fleetrun bench`: each rank runs our own worker program with these arguments, in the environment that ranks of a job file
// get. Prints no banner. `options` name the log folder.
int launch_worker_program(const LaunchOptions& options, const std::vector<std::string>& words,
                          const Environment& environment);

}  // namespace fleetrun::launch
