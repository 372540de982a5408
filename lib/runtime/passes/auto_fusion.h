#pragma once
#include "runtime/passes/pass_context.h"

namespace fleetrun::runtime {

// Two or more ops that look at each element by itself, of which one reads what another makes, become one op that does
// their steps over pieces which stay in the cache. It stands where the last of them did; nobody else may read what they
// make before that.
//
//   elementwise_add x y -> s
//   relu x=s -> r                    =>    elementwise_group x0=x x1=y -> y0=r y1=k
//   scale x=r -> k {bias; scale}             {code="t0 = elementwise_add x0 x1; y0 = relu t0; y1 = scale y0 2 0"}
//   conv2d x=r ...                         conv2d x=r ...
// Bits stay as they are.
void auto_fusion(Program& program, const PassContext& context);

}  // namespace fleetrun::runtime
