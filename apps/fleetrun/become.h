// Subcommands that the worker program answers, because it has the models.
#pragma once
#include "launch/plan/program.h"

namespace fleetrun {

// Replaces this process by the program. Throws Error(os).
[[noreturn]] void become(const launch::Program& program);

}  // namespace fleetrun
