// Finds the parameter where NaN or infinity first appears.
#pragma once
#include <string>

#include "runtime/exec/storage.h"
#include "runtime/graph/program.h"

namespace fleetrun::runtime {

// "conv1.weight" or "the gradient of conv1.weight": the first with a NaN or an infinity, in the network's order, with
// all weights before all gradients. Empty when all are finite. It reads all values, so call it at the end of a run, not
// each step.
std::string first_not_finite(const Program& program, const Storage& storage);

// "nan", "inf" or "-inf": the sign of a NaN says nothing.
std::string describe_number(double number);

}  // namespace fleetrun::runtime
