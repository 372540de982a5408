// Kernels over the tensors of a whole op. One launch serves a list of any length: the addresses and sizes of the tensors are
// in the launch's parameters, so nothing is uploaded and a captured graph has its own copy.
#pragma once
#include <array>
#include <cstdint>
#include <span>

namespace fleetrun::cuda {

// The arrays that belong together, element by element, and other values of the tensor, such as Adam's powers.
template <int arrays>
struct TensorArrays {
  std::array<void*, arrays> data;
  std::int64_t count;  // of elements
};

template <int arrays>
using TensorList = std::span<const TensorArrays<arrays>>;

}  // namespace fleetrun::cuda
