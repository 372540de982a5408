// Starts and supervises one distributed run: the table of contents of this library.
#pragma once
#include "base/environment.h"
#include "launch/options.h"

namespace fleetrun::launch {

// The exit code of the run. Throws Error when it cannot begin.
int launch(const LaunchOptions& options, const Environment& environment);

}  // namespace fleetrun::launch
