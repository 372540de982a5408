// Ops that do not run in every step.
#pragma once
#include "runtime/graph/program.h"

namespace fleetrun::runtime {

// The op runs in the steps of which this is a divisor, counted from 1. 1: in every step.
int every_of(const Op& op);
void set_every(Op& op, int steps);

}  // namespace fleetrun::runtime
