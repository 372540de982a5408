// How many threads a kernel of one element per thread is started with.
#pragma once
#include <algorithm>
#include <cstdint>

namespace fleetrun::cuda {

constexpr int kThreads = 256;                // of a block
constexpr std::int64_t kMostBlocks = 65536;  // threads take further elements in steps of the grid

inline int blocks_for(std::int64_t count) {
  return static_cast<int>(std::clamp<std::int64_t>((count + kThreads - 1) / kThreads, 1, kMostBlocks));
}

}  // namespace fleetrun::cuda

// `i` over all elements of this thread.
#define FLEETRUN_EACH(i, count)                                                           \
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < (count); \
       i += std::int64_t{gridDim.x} * blockDim.x)
