#pragma once
#include "runtime/passes/pass.h"

namespace fleetrun::runtime {

// Sums every parameter gradient over the ranks, right after the op that makes it; the mean comes from the
// gradient of the loss, which starts as 1/ranks (gradient_scale_strategy CoeffNumDevice) or stays 1 (One).
//
//   fill -> loss@GRAD {value=1}                  fill -> loss@GRAD {value=1/ranks}
//   fc_grad ... -> w@GRAD                  =>    fc_grad ... -> w@GRAD
//   sgd param=w grad=w@GRAD                      all_reduce x=w@GRAD -> x=w@GRAD {op="sum"}
//                                                sgd param=w grad=w@GRAD
// One rank: nothing to do.
void insert_all_reduce(Program& program, const PassContext& context);

}  // namespace fleetrun::runtime
