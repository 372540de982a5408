// Stands in for lib/cuda/plugin/grid.cuh where the .cu files are compiled for the host: the threads of a block take
// turns, each until it waits for the others or ends.
#pragma once
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "cuda/on_host/stream.h"

#undef __global__
#undef __device__
#undef __host__
#undef __shared__
#undef __grid_constant__
#define __global__
#define __device__
#define __host__
#define __shared__ static
#define __grid_constant__

namespace fleetrun::cuda {

// Few: that threads and blocks take further elements and rows.
constexpr int kThreads = 32;
constexpr std::int64_t kMostBlocks = 3;

namespace on_host {

struct Place {
  unsigned x;
};
extern Place block, thread, blocks;  // of the thread whose turn it is
constexpr Place kBlockSize = {kThreads};

void wait_for_block();  // of the thread whose turn it is
void run_together(
    const std::function<void()>& thread_body);  // the threads of a block that wait for each other

}  // namespace on_host

template <typename... Parameters, typename... Arguments>
void start_blocks(void (*kernel)(Parameters...), std::int64_t count, cudaStream_t stream,
                  const Arguments&... arguments) {
  on_host::give_kernel(stream, &on_host::Counts::kernels, [=] {
    on_host::blocks.x = static_cast<unsigned>(std::min(count, kMostBlocks));
    for (on_host::block.x = 0; on_host::block.x < on_host::blocks.x; ++on_host::block.x)
      on_host::run_together([&] { kernel(arguments...); });
  });
}

// Such kernels never wait for other threads.
template <typename... Parameters, typename... Arguments>
void start_elements(void (*kernel)(Parameters...), std::int64_t count, cudaStream_t stream,
                    const Arguments&... arguments) {
  on_host::give_kernel(stream, &on_host::Counts::kernels, [=] {
    on_host::blocks.x = static_cast<unsigned>(std::min((count + kThreads - 1) / kThreads, kMostBlocks));
    for (on_host::block.x = 0; on_host::block.x < on_host::blocks.x; ++on_host::block.x)
      for (on_host::thread.x = 0; on_host::thread.x < kThreads; ++on_host::thread.x)
        kernel(arguments..., count);
  });
}

template <typename T>
T atomicAdd(T* where, T more) {
  return std::exchange(*where, *where + more);
}
inline int atomicExch_system(int* where, int value) { return std::exchange(*where, value); }
inline void __threadfence_system() {}

}  // namespace fleetrun::cuda

using std::max;
using std::min;

#define __syncthreads ::fleetrun::cuda::on_host::wait_for_block
#define blockIdx ::fleetrun::cuda::on_host::block
#define threadIdx ::fleetrun::cuda::on_host::thread
#define gridDim ::fleetrun::cuda::on_host::blocks
#define blockDim ::fleetrun::cuda::on_host::kBlockSize

#define FLEETRUN_EACH(i, count)                                                           \
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < (count); \
       i += std::int64_t{gridDim.x} * blockDim.x)
#define FLEETRUN_EACH_ROW(row, rows) for (std::int64_t row = blockIdx.x; row < (rows); row += gridDim.x)
