#pragma once
#include "runtime/passes/pass_context.h"

namespace fleetrun::runtime {

// Sums every parameter gradient over the ranks, right after the op that makes it.
//
//   fc_grad ... -> w@GRAD                  =>    fc_grad ... -> w@GRAD
//   sgd param=w grad=w@GRAD                      all_reduce x=w@GRAD -> x=w@GRAD {op="sum"}
//                                                sgd param=w grad=w@GRAD
void insert_all_reduce(Program& program, const PassContext& context);

}  // namespace fleetrun::runtime
