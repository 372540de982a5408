// Which communicator a collective goes by: one of those of the training, counted from 0.
#pragma once
#include "runtime/graph/program.h"

namespace fleetrun::runtime {

int communicator_of(const Op& op);  // 0 when the op does not say
void set_communicator(Op& op, int communicator);

}  // namespace fleetrun::runtime
