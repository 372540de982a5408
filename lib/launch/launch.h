// Starts and supervises one distributed run. launch() in launch.cpp is the table of contents of this library.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "base/error/error.h"
#include "base/system/environment.h"
#include "launch/cli/flags/launch_options.h"
#include "launch/schedulers/allocation.h"

namespace fleetrun::launch {

// The exit code of the run. `allocation` is what settle_nodes() found. `words` are those of our command line, which start the other nodes,
// too. Throws Error when the run cannot begin.
int launch(const LaunchOptions& options, const Environment& environment,
           const std::optional<Allocation>& allocation = std::nullopt,
           const std::vector<std::string>& words = {});

// For who finds before launch() that this node cannot start its part of a run. If it is not the first node, and the first one runs, all nodes
// end with this error and do not wait for this one. `allocation` as for launch(). Throws nothing.
void tell_other_nodes(const LaunchOptions& options, const Environment& environment,
                      const std::optional<Allocation>& allocation, const Error& error);

// The same as launch() for `fleetrun bench`: each rank runs our own worker program with these arguments, in the environment that ranks of a job file
// get. Prints no banner. `options` name the log folder.
int launch_worker_program(const LaunchOptions& options, const std::vector<std::string>& words,
                          const Environment& environment);

}  // namespace fleetrun::launch
