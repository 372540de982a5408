// The device's side of multi_tensor.h. Tensors are cut into chunks of kChunk elements. Blocks take chunks in turn, so
// a tensor of 2 million elements and one of 64 keep the device equally busy.
#pragma once
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "cuda/plugin/multi_tensor.h"
#include "cuda/plugin/number.cuh"
#include "cuda/plugin/over_block.cuh"

namespace fleetrun::cuda {

constexpr int kChunk = kThreads * kWide * 4;  // elements

inline std::int64_t chunks_of(std::int64_t count) { return (count + kChunk - 1) / kChunk; }

// The tensors of one launch, in its parameters.
template <int arrays_, int most>
struct Table {
  static constexpr int kArrays = arrays_, kMost = most;
  void* data[arrays_][most];
  std::int64_t counts[most];
  int first_chunks[most];  // of each tensor, among those of the launch
  int tensors;             // in use
  int tensors_before;      // in earlier launches of the op
  int chunks_before;
};

// A part of a tensor.
template <int arrays>
struct Chunk {
  void* data[arrays];  // of the whole tensor
  std::int64_t begin, end;
  int tensor;  // among those of the op
};

template <typename Tables>
__device__ int tensor_with(const Tables& table, int chunk) {
  int low = 0, high = table.tensors;
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    if (table.first_chunks[middle] <= chunk)
      low = middle;
    else
      high = middle;
  }
  return low;
}

template <typename Tables>
__device__ Chunk<Tables::kArrays> find_chunk(const Tables& table, int number) {
  const int tensor = tensor_with(table, number);
  Chunk<Tables::kArrays> chunk;
#pragma unroll
  for (int i = 0; i < Tables::kArrays; ++i) chunk.data[i] = table.data[i][tensor];
  chunk.begin = std::int64_t{number - table.first_chunks[tensor]} * kChunk;
  chunk.end = min(chunk.begin + kChunk, table.counts[tensor]);
  chunk.tensor = table.tensors_before + tensor;
  return chunk;
}

// Body::run<n>(data, at, ...) for all elements of the chunk, kWide at once where all arrays lie so. The first
// Body::kArrays are arrays, the others scalars.
template <typename Body, int arrays, typename... More>
__device__ void each_of_chunk(const Body& body, const Chunk<arrays>& chunk, More&&... more) {
  std::uintptr_t addresses = 0;
#pragma unroll
  for (int i = 0; i < Body::kArrays; ++i) addresses |= reinterpret_cast<std::uintptr_t>(chunk.data[i]);
  const bool wide = addresses % (kWide * sizeof(float)) == 0;
  const std::int64_t end = wide ? chunk.begin + (chunk.end - chunk.begin) / kWide * kWide : chunk.begin;
  for (std::int64_t i = chunk.begin + threadIdx.x * kWide; i < end; i += kThreads * kWide)
    body.template run<kWide>(chunk.data, i, more...);
  for (std::int64_t i = end + threadIdx.x; i < chunk.end; i += kThreads)
    body.template run<1>(chunk.data, i, more...);
}

// Body::step(chunk) is what holds for all elements of a tensor; one thread computes it. No element is touched where
// Body::is_idle(step). A comment beside each body says its bytes per element and the predicted share of the memory
// bandwidth.
template <typename Body, typename Tables>
__global__ void update_chunks(const __grid_constant__ Tables table, const Body body, int chunks) {
  __shared__ typename Body::Step shared;
  FLEETRUN_EACH_ROW(number, chunks) {
    const auto chunk = find_chunk(table, static_cast<int>(number));
    if (threadIdx.x == 0) shared = body.step(chunk);
    __syncthreads();
    const typename Body::Step step = shared;
    if (!body.is_idle(step)) each_of_chunk(body, chunk, step);
    __syncthreads();
  }
}

// The same, of a body that also adds to two sums. Each chunk has a place in `sums`: it also writes 16 bytes per
// chunk. A comment beside each body says its bytes per element and the predicted share of the memory bandwidth.
template <typename Body, typename Tables>
__global__ void sum_chunks(const __grid_constant__ Tables table, const Body body, TwoSums* sums, int chunks) {
  __shared__ typename Body::Step shared;
  __shared__ TwoSums of_threads[kThreads];
  FLEETRUN_EACH_ROW(number, chunks) {
    const auto chunk = find_chunk(table, static_cast<int>(number));
    if (threadIdx.x == 0) shared = body.step(chunk);
    __syncthreads();
    const typename Body::Step step = shared;
    TwoSums mine = {0, 0};
    each_of_chunk(body, chunk, step, mine);
    mine = over_block(mine, of_threads, Sum());
    if (threadIdx.x == 0) sums[table.chunks_before + number] = mine;
  }
}

// use(tensor, sums) once for each tensor. A block adds up the sums of a tensor's chunks. 16 bytes read per chunk and what
// `use` reads and writes per tensor. Predicted share of the memory bandwidth: below 0.01, because its launch takes longer
// than moving the bytes.
template <typename Use, typename Tables>
__global__ void use_sums(const __grid_constant__ Tables table, const TwoSums* sums, const Use use) {
  __shared__ TwoSums of_threads[kThreads];
  FLEETRUN_EACH_ROW(tensor, table.tensors) {
    const TwoSums* const of_tensor = sums + table.chunks_before + table.first_chunks[tensor];
    const std::int64_t chunks = (table.counts[tensor] + kChunk - 1) / kChunk;
    TwoSums mine = {0, 0};
    for (std::int64_t i = threadIdx.x; i < chunks; i += kThreads) mine = mine + of_tensor[i];
    mine = over_block(mine, of_threads, Sum());
    if (threadIdx.x == 0) use(table.tensors_before + static_cast<int>(tensor), mine);
  }
}

// What fits into a launch's parameters beside a body: since CUDA 12.1 32764 bytes, on devices of compute capability 7.0.
constexpr std::size_t kBodyBytes = 128;
#if CUDART_VERSION >= 12010
constexpr std::size_t kParameterBytes = 32764, kFewParameterBytes = 12 << 10U;
#else
constexpr std::size_t kParameterBytes = 4096, kFewParameterBytes = 4096;
#endif

template <int arrays>
constexpr int most_tensors(std::size_t bytes) {
  return static_cast<int>((bytes - kBodyBytes) /
                          (arrays * sizeof(void*) + sizeof(std::int64_t) + sizeof(int)));
}

template <typename Tables, int arrays, typename Start>
void start_in_tables(TensorList<arrays> tensors, const Start& start) {
  static_assert(sizeof(Tables) + kBodyBytes / 2 <= kParameterBytes);
  Tables table;
  int chunks_before = 0;
  for (std::size_t first = 0; first < tensors.size(); first += Tables::kMost) {
    table.tensors = static_cast<int>(std::min<std::size_t>(Tables::kMost, tensors.size() - first));
    table.tensors_before = static_cast<int>(first);
    table.chunks_before = chunks_before;
    int chunks = 0;
    for (int i = 0; i < table.tensors; ++i) {
      const TensorArrays<arrays>& tensor = tensors[first + static_cast<std::size_t>(i)];
      for (int k = 0; k < arrays; ++k) table.data[k][i] = tensor.data[static_cast<std::size_t>(k)];
      table.counts[i] = tensor.count;
      table.first_chunks[i] = chunks;
      chunks += static_cast<int>(chunks_of(tensor.count));
    }
    start(table, chunks);
    chunks_before += chunks;
  }
}

// start(table, chunks): once for all tensors, or for as many as fit into a launch's parameters.
template <int arrays, typename Start>
void start_tables(TensorList<arrays> tensors, const Start& start) {
  constexpr int kFew = most_tensors<arrays>(kFewParameterBytes),
                kMany = most_tensors<arrays>(kParameterBytes);
  if (tensors.size() == 1) return start_in_tables<Table<arrays, 1>>(tensors, start);
  if (tensors.size() <= kFew) return start_in_tables<Table<arrays, kFew>>(tensors, start);
  start_in_tables<Table<arrays, kMany>>(tensors, start);
}

template <typename Body, int arrays>
void start_update(TensorList<arrays> tensors, const Body& body, cudaStream_t stream) {
  start_tables(tensors, [&](const auto& table, int chunks) {
    using Tables = std::remove_cvref_t<decltype(table)>;
    start_blocks(update_chunks<Body, Tables>, chunks, stream, table, body, chunks);
  });
}

template <typename Body, typename Use, int arrays>
void start_sums(TensorList<arrays> tensors, const Body& body, TwoSums* sums, const Use& use,
                cudaStream_t stream) {
  start_tables(tensors, [&](const auto& table, int chunks) {
    using Tables = std::remove_cvref_t<decltype(table)>;
    start_blocks(sum_chunks<Body, Tables>, chunks, stream, table, body, sums, chunks);
    start_blocks(use_sums<Use, Tables>, table.tensors, stream, table, sums, use);
  });
}

}  // namespace fleetrun::cuda
