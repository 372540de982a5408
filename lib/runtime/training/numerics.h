// Where a training stopped being made of numbers.
#pragma once
#include <string>

#include "runtime/exec/storage.h"
#include "runtime/graph/program.h"

namespace fleetrun::runtime {

// "conv1.weight" or "the gradient of conv1.weight": the first in the network's order that has a NaN or an infinity, weights before
// gradients; empty when all are finite. Reads all of them: for the end of a run, not for each step.
std::string first_not_finite(const Program& program, const Storage& storage);

}  // namespace fleetrun::runtime
