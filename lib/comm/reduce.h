// The arithmetic of reductions, element by element, for every dtype that can be reduced.
#pragma once
#include <cstddef>

#include "base/buffer_view.h"
#include "comm/communicator.h"

namespace fleetrun::comm {

// out[i] = a[i] op b[i]; out may be a or b. f16 and bf16 are computed in f32 and rounded once.
using ReduceFunction = void (*)(void* out, const void* a, const void* b, std::size_t count);

// Throws Error(internal) for a dtype without arithmetic (u8).
ReduceFunction reduce_function(DType dtype, ReduceOp op);

}  // namespace fleetrun::comm
