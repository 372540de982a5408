// The manual page of fleetrun, in groff's man macros.
#pragma once
#include <string>
#include <vector>

#include "launch/cli/flags/flag.h"
#include "launch/cli/subcommand.h"

namespace fleetrun::launch {

std::string man_page(const std::vector<Flag>& table, const std::vector<Subcommand>& subcommands);

}  // namespace fleetrun::launch
