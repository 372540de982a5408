// The arithmetic of reductions, element by element, for every dtype that can be reduced, on the widest vectors that
// vector_level() allows. All levels give the same bits, except that a NaN may become another NaN.
#pragma once
#include <cstddef>

#include "base/number/buffer_view.h"
#include "base/number/vector_level.h"
#include "comm/collective/communicator.h"

namespace fleetrun::comm {

// out[i] = a[i] op b[i]; out may be a or b. f16 and bf16 are computed in f32 and rounded once.
using ReduceFunction = void (*)(void* out, const void* a, const void* b, std::size_t count);
// a[i] = b[i] = a[i] op b[i].
using ReduceBothFunction = void (*)(void* a, void* b, std::size_t count);

struct Reduction {
  ReduceFunction into = nullptr;
  ReduceBothFunction both = nullptr;
};

// Throws Error(internal) for u8, which has no arithmetic.
Reduction reduction(DType dtype, ReduceOp op, VectorLevel level = vector_level());
ReduceFunction reduce_function(DType dtype, ReduceOp op);

}  // namespace fleetrun::comm
