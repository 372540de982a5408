// Kernels that sum up rows: the loss, its gradient, accuracy, means. Their sums are taken in one order, whatever the
// device, so that a run can be repeated bit by bit.
#include "cuda/plugin/grid.cuh"
#include "cuda/plugin/launch.h"

namespace fleetrun::cuda {
namespace {

constexpr int kTop = 5;

// Of all threads of a block, to all of them. `shared` has kThreads places.
template <typename T, typename Combine>
__device__ T over_block(T mine, T* shared, const Combine& combine) {
  shared[threadIdx.x] = mine;
  __syncthreads();
  for (int half = kThreads / 2; half > 0; half /= 2) {
    if (static_cast<int>(threadIdx.x) < half)
      shared[threadIdx.x] = combine(shared[threadIdx.x], shared[threadIdx.x + half]);
    __syncthreads();
  }
  const T result = shared[0];
  __syncthreads();
  return result;
}

struct Sum {
  template <typename T>
  __device__ T operator()(T a, T b) const {
    return a + b;
  }
};

struct Highest {
  __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
};

// Whether the label is a class; one that is too high is told to the host.
__device__ bool is_class(int label, int row, int classes, BadLabel* bad) {
  if (label >= classes && atomicExch_system(&bad->seen, 1) == 0) {
    bad->sample = row;
    bad->label = label;
    __threadfence_system();
  }
  return label >= 0 && label < classes;
}

// One block for each row.
__global__ void cross_entropy_row(const float* logits, const int* label, float* softmax, float* loss,
                                  int classes, BadLabel* bad) {
  __shared__ float floats[kThreads];
  __shared__ double doubles[kThreads];
  const int row = static_cast<int>(blockIdx.x);
  const float* const x = logits + std::int64_t{row} * classes;
  float* const out = softmax + std::int64_t{row} * classes;
  float highest = -INFINITY;
  for (int c = static_cast<int>(threadIdx.x); c < classes; c += kThreads) highest = fmaxf(highest, x[c]);
  highest = over_block(highest, floats, Highest());
  double sum = 0;
  for (int c = static_cast<int>(threadIdx.x); c < classes; c += kThreads) {
    const float e = expf(x[c] - highest);
    out[c] = e;
    sum += static_cast<double>(e);
  }
  sum = over_block(sum, doubles, Sum());
  const auto factor = static_cast<float>(1.0 / sum);
  for (int c = static_cast<int>(threadIdx.x); c < classes; c += kThreads) out[c] *= factor;
  if (threadIdx.x != 0) return;
  const int wanted = label[row];
  loss[row] =
      is_class(wanted, row, classes, bad)
          ? static_cast<float>(log(sum) + static_cast<double>(highest) - static_cast<double>(x[wanted]))
          : 0.0F;
}

__global__ void cross_entropy_grad_row(const float* softmax, const int* label, const float* dloss,
                                       float* dlogits, int classes, BadLabel* bad) {
  const int row = static_cast<int>(blockIdx.x);
  const std::int64_t first = std::int64_t{row} * classes;
  const int wanted = label[row];
  const bool counted = is_class(wanted, row, classes, bad);
  for (int c = static_cast<int>(threadIdx.x); c < classes; c += kThreads) {
    const float one = c == wanted ? 1.0F : 0.0F;
    dlogits[first + c] = counted ? (softmax[first + c] - one) * dloss[row] : 0.0F;
  }
}

// One block: of each row in turn it counts the classes that are ahead of the label.
__global__ void count_hits(const float* scores, const int* label, float* hits, int rows, int classes,
                           BadLabel* bad) {
  __shared__ int counts[kThreads];
  float top1 = 0, top5 = 0, counted = 0;
  for (int row = 0; row < rows; ++row) {
    const int wanted = label[row];
    if (!is_class(wanted, row, classes, bad)) continue;
    const float* const x = scores + std::int64_t{row} * classes;
    const float mine = x[wanted];
    int ahead = 0;  // against NaN everything is ahead
    for (int c = static_cast<int>(threadIdx.x); c < classes; c += kThreads)
      ahead += c < wanted ? !(x[c] < mine) : !(x[c] <= mine);
    ahead = over_block(ahead, counts, Sum());
    top1 += ahead < 1 ? 1.0F : 0.0F;
    top5 += ahead < kTop ? 1.0F : 0.0F;
    counted += 1.0F;
  }
  if (threadIdx.x == 0) hits[0] = top1, hits[1] = top5, hits[2] = counted;
}

__global__ void mean_of_all(const float* x, float* y, std::int64_t count) {
  __shared__ double doubles[kThreads];
  double sum = 0;
  for (std::int64_t i = threadIdx.x; i < count; i += kThreads) sum += static_cast<double>(x[i]);
  sum = over_block(sum, doubles, Sum());
  if (threadIdx.x == 0) *y = static_cast<float>(sum / static_cast<double>(count));
}

__global__ void add_bias(float* y, const float* bias, std::int64_t count, std::int64_t columns) {
  FLEETRUN_EACH(i, count) y[i] += bias[i % columns];
}

// One thread for each column.
__global__ void column_sums(const float* y, float* sums, std::int64_t rows, std::int64_t columns) {
  FLEETRUN_EACH(column, columns) {
    double sum = 0;
    for (std::int64_t row = 0; row < rows; ++row) sum += static_cast<double>(y[row * columns + column]);
    sums[column] = static_cast<float>(sum);
  }
}

}  // namespace

void cross_entropy(const float* logits, const int* label, float* softmax, float* loss, int rows, int classes,
                   BadLabel* bad, cudaStream_t stream) {
  cross_entropy_row<<<static_cast<unsigned>(rows), kThreads, 0, stream>>>(logits, label, softmax, loss,
                                                                          classes, bad);
}

void cross_entropy_grad(const float* softmax, const int* label, const float* dloss, float* dlogits, int rows,
                        int classes, BadLabel* bad, cudaStream_t stream) {
  cross_entropy_grad_row<<<static_cast<unsigned>(rows), kThreads, 0, stream>>>(softmax, label, dloss, dlogits,
                                                                               classes, bad);
}

void accuracy(const float* scores, const int* label, float* hits, int rows, int classes, BadLabel* bad,
              cudaStream_t stream) {
  count_hits<<<1, kThreads, 0, stream>>>(scores, label, hits, rows, classes, bad);
}

void mean(const float* x, float* y, std::int64_t count, cudaStream_t stream) {
  mean_of_all<<<1, kThreads, 0, stream>>>(x, y, count);
}

void add_to_rows(float* y, const float* bias, std::int64_t rows, std::int64_t columns, cudaStream_t stream) {
  add_bias<<<blocks_for(rows * columns), kThreads, 0, stream>>>(y, bias, rows * columns, columns);
}

void sum_of_rows(const float* y, float* sums, std::int64_t rows, std::int64_t columns, cudaStream_t stream) {
  column_sums<<<blocks_for(columns), kThreads, 0, stream>>>(y, sums, rows, columns);
}

}  // namespace fleetrun::cuda
