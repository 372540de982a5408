#pragma once
#include "runtime/passes/pass_context.h"

namespace fleetrun::runtime {

// reduce_strategy Reduce: every parameter has one rank that owns it, sums its gradient, updates it and sends it to the
// others. Owners are chosen in the order of the gradients: the rank that owns the fewest elements so far.
//
//   fc_grad ... -> w@GRAD                  =>    fc_grad ... -> w@GRAD
//   sgd param=w grad=w@GRAD -> param=w           reduce x=w@GRAD -> x=w@GRAD {op="sum"; root=1}
//                                                sgd param=w grad=w@GRAD -> param=w {owner=1}
//                                                broadcast x=w -> x=w {roots=[1]}
// Each rank then keeps the updates that it owns (keep_own_updates.h).
void insert_reduce(Program& program, const PassContext& context);

}  // namespace fleetrun::runtime
