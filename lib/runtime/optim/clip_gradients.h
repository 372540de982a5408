// Limits gradients before the optimizer reads them: after the sum over the ranks, and after the loss scale is taken out.
//
//   value, norm   clip_by_value grad=a@GRAD,b@GRAD -> grad=a@GRAD,b@GRAD {limit=1.0}
//   global_norm   fill -> gradient_norms {shape=[2]};  gradient_norms grad=a@GRAD,b@GRAD norms=gradient_norms
//                 clip_by_global_norm grad=a@GRAD,b@GRAD norms=gradient_norms {limit=1.0}
#pragma once
#include <vector>

#include "job/spec/job_spec.h"
#include "runtime/graph/builder.h"

namespace fleetrun::runtime {

// In place. `one_by_one`: an op for each gradient, where every rank updates only some of the parameters.
void append_clipping(Builder& builder, const job::GradientClipSpec& clip,
                     const std::vector<ValueId>& gradients, bool one_by_one);

}  // namespace fleetrun::runtime
