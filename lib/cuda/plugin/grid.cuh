// How kernels are started: blocks of kThreads threads, one element for each thread or one row for each block.
#pragma once
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdint>

namespace fleetrun::cuda {

constexpr int kThreads = 256;  // of a block
constexpr std::int64_t kMostBlocks =
    65536;  // threads take further elements, and blocks further rows, in steps of the grid

template <typename... Parameters, typename... Arguments>
void start_blocks(void (*kernel)(Parameters...), std::int64_t blocks, cudaStream_t stream,
                  const Arguments&... arguments) {
  if (blocks == 0) return;
  kernel<<<static_cast<unsigned>(std::min(blocks, kMostBlocks)), kThreads, 0, stream>>>(arguments...);
}

// As many threads as elements; a kernel's last parameter is their count.
template <typename... Parameters, typename... Arguments>
void start_elements(void (*kernel)(Parameters...), std::int64_t count, cudaStream_t stream,
                    const Arguments&... arguments) {
  start_blocks(kernel, (count + kThreads - 1) / kThreads, stream, arguments..., count);
}

}  // namespace fleetrun::cuda

// `i` over all elements of this thread.
#define FLEETRUN_EACH(i, count)                                                           \
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < (count); \
       i += std::int64_t{gridDim.x} * blockDim.x)

// `row` over all rows of this block.
#define FLEETRUN_EACH_ROW(row, rows) for (std::int64_t row = blockIdx.x; row < (rows); row += gridDim.x)
