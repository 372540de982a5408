// Mixed precision: ops of the forward part that strategy.amp_configs wants in a narrow type get narrow inputs, the others
// f32 ones, by casts that stand where the two meet. A value is cast once, whoever reads it. Scale, offset and statistics
// of a batch norm stay f32. Before the backward part is appended: its gradients follow the casts back.
//
//   conv2d x=image w=w -> y            cast x=image -> image.cast_bf16;  cast x=w -> w.cast_bf16
//   relu x=y -> z                =>    conv2d x=image.cast_bf16 w=w.cast_bf16 -> y (bf16)
//   mean x=z -> loss                   relu x=y -> z (bf16);  cast x=z -> z.cast_f32;  mean x=z.cast_f32 -> loss
#pragma once
#include "job/spec/job_spec.h"
#include "runtime/graph/op_def.h"

namespace fleetrun::runtime {

struct CastCounts {
  int narrow = 0;  // ops that compute in the narrow type
  int ops = 0;     // of the forward part, without the casts
  int casts = 0;
};

// Throws Error(config) as AmpLists, and for a custom_black_varnames that names no value.
CastCounts cast_forward(Program& program, const OpTable& ops, const job::AmpSpec& amp, DType narrow);

}  // namespace fleetrun::runtime
