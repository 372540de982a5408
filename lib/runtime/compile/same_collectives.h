// Ranks with different shares of a step run different programs, which must communicate alike.
#pragma once
#include "runtime/graph/program.h"

namespace fleetrun::runtime {

// Throws Error(internal) that shows the first collective in which two programs with layouts differ. Ranks that ran them would
// wait for each other, or would sum elements that do not belong together.
void check_same_collectives(const Program& one, const Program& other);

}  // namespace fleetrun::runtime
