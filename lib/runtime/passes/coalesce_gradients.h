#pragma once
#include "runtime/passes/pass_context.h"

namespace fleetrun::runtime {

// Lays the gradients that will travel together one after the other (gradient_groups.h has the rules).
//
//   gradient a@GRAD f32[9] of a           gradient a@GRAD f32[9] of a
//   gradient b@GRAD f32[5] of b      =>   gradient b@GRAD f32[5] of b
//                                         contiguous b@GRAD,a@GRAD
// (b's gradient is made first.)
void coalesce_gradients(Program& program, const PassContext& context);

}  // namespace fleetrun::runtime
