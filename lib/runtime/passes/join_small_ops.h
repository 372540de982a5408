// Ops that each cost a device more to start than to run become one op: casts of parameters, and what gradients need before their update, which
// is casts and check_finite_and_unscale. The op stands where the first of them stood, so none moves in front of what makes its input. Ops
// that read what different collectives have summed stay apart: none waits for the collective of another. The gradients that one collective
// sums in a narrow type are cast by one op, which stands where the last of their casts stood.
//
//   cast x=a -> y=a.cast_f16                        cast x=a,b -> y=a.cast_f16,b.cast_f16
//   conv2d x=image w=a.cast_f16 -> y=one      =>    conv2d x=image w=a.cast_f16 -> y=one
//   cast x=b -> y=b.cast_f16                        conv2d x=one w=b.cast_f16 -> y=two
//   conv2d x=one w=b.cast_f16 -> y=two
#pragma once
#include "runtime/graph/op_def.h"

namespace fleetrun::runtime {

void join_small_ops(Program& program, const OpTable& ops);

}  // namespace fleetrun::runtime
