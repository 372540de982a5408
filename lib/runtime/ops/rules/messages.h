// What every op that talks to other ranks asks of its arguments.
#pragma once
#include "runtime/graph/op_def.h"

namespace fleetrun::runtime::ops {

void expect_sum(const OpView& op);        // Throws Error(config) unless the attribute op is "sum".
void expect_one_dtype(const OpView& op);  // Throws Error(config) unless all of x have one dtype.

}  // namespace fleetrun::runtime::ops
