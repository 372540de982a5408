// Which stage of a pipeline runs each op. The stage is the op's owner (owner_of.h): a rank has the parameters, states and ops of
// its stage alone.
#pragma once
#include <vector>

#include "runtime/passes/shared/pass_context.h"

namespace fleetrun::runtime {

// The rest of a training program, when its layouts are decided and its forward part has stages (cut_forward in passes.h). An
// update of parameters of several stages becomes one for each of them. Ops that several stages need, such as a scaled learning
// rate, get no owner.
void assign_stages(Program& program, const PassContext& context);

// Gives the ops of the evaluation program the stages that have their parameters.
void assign_evaluation_stages(Program& evaluation, const Program& training);

// Values of the forward pass that `stage` sends to the next one, or gradients that the next one sends to `stage`.
std::vector<ValueId> crossing_values(const Program& program, int stage);
std::vector<ValueId> crossing_gradients(const Program& program, int stage);

}  // namespace fleetrun::runtime
