// Moving averages of all weights: a state <parameter>.ema for each, which an op updates after all parameters.
#pragma once
#include <string>

#include "runtime/graph/builder.h"

namespace fleetrun::runtime {

std::string average_name(const std::string& parameter);  // "fc.weight.ema"

// After the updates.
void append_averages(Builder& builder, double decay);

// Reads the averages in place of the parameters: `program` is an evaluation program that shares the training's storage.
void read_averages(Program& program);

}  // namespace fleetrun::runtime
