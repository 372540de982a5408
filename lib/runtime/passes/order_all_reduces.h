#pragma once
#include "runtime/passes/pass_context.h"

namespace fleetrun::runtime {

// Brings the sums of gradients into one order on every rank: by the level on which their gradients are made (an op's
// is one above the highest of those whose values it reads), those of one level by the name of their first gradient,
// the last name first (paddle/fluid/framework/ir/multi_devices_graph_pass/all_reduce_deps_pass.cc). Each stands where
// its gradients and the sums in front of it have been made.
//
//   fc_grad ... -> a@GRAD (level 3)      fc_grad ... -> a@GRAD
//   all_reduce x=a@GRAD                  fc_grad ... -> b@GRAD
//   fc_grad ... -> b@GRAD (level 2) =>   all_reduce x=b@GRAD
//   all_reduce x=b@GRAD                  all_reduce x=a@GRAD
void order_all_reduces(Program& program, const PassContext& context);

}  // namespace fleetrun::runtime
