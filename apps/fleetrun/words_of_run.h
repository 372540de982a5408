// Subcommands that take the command line of a run.
#pragma once
#include <string>
#include <vector>

#include "launch/cli/flags/read_flags.h"

namespace fleetrun {

// The flags of the run as they were typed, and its program with its arguments. `program`: what stands there if the user named none.
std::vector<std::string> words_of_run(const launch::FoundFlags& found, const std::string& program);

}  // namespace fleetrun
