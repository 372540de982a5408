// The subcommands of fleetrun, one row each: main, --help, completion and the man page read this table.
#pragma once
#include <vector>

#include "launch/cli/subcommand.h"

namespace fleetrun {

const std::vector<launch::Subcommand>& subcommands();

}  // namespace fleetrun
