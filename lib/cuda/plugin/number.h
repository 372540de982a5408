// The types of elements that kernels of this plug-in know.
#pragma once

namespace fleetrun::cuda {

enum class Number { f32, f16, bf16 };

}  // namespace fleetrun::cuda
