// Between bf16 in memory and the f32 that our kernels compute in: a few thousand elements at a time, which stay in the
// first cache, so that one set of loops serves both types and memory sees half the bytes.
#pragma once
#include <cstdint>

namespace fleetrun::runtime::cpu {

using Bf16 = std::uint16_t;  // its bits

void widen(const Bf16* from, float* to, std::int64_t count);
// To the nearest, ties to even; NaN stays NaN. What is too small for a normal number may become 0: the instruction that
// does it on a processor with bf16 makes it so.
void narrow(const float* from, Bf16* to, std::int64_t count);

}  // namespace fleetrun::runtime::cpu
