// Kernels that look at each element by itself.
#include "cuda/plugin/elements.cuh"

namespace fleetrun::cuda {
namespace {

// Calls use(at, std::integral_constant) for the packs of N elements that this thread takes, and for each element of the last
// pack if that is not full.
template <int N, typename Use>
__device__ void each_pack(std::int64_t elements, std::int64_t packs, const Use& use) {
  FLEETRUN_EACH(pack, packs) {
    const std::int64_t first = pack * N;
    if (first + N <= elements) {
      use(first, std::integral_constant<int, N>());
      continue;
    }
    for (std::int64_t at = first; at < elements; ++at) use(at, std::integral_constant<int, 1>());
  }
}

// y = body(x), or body(x, other): one pack for each thread. b bytes read per input and b written, per element.
// Predicted share of the memory bandwidth: 0.83.
template <typename T, typename Body>
__global__ void map_packs(const T* x, const T* other, T* y, Body body, std::int64_t elements,
                          std::int64_t packs) {
  constexpr bool kTwo = Body::kInputs == 2;
  each_pack<kPack<T>>(elements, packs, [&]<int N>(std::int64_t at, std::integral_constant<int, N>) {
    const auto from = Pack<T, N>::read(x + at);
    Pack<T, N> too{}, made{};
    if constexpr (kTwo) too = Pack<T, N>::read(other + at);
#pragma unroll
    for (int i = 0; i < N; ++i) {
      if constexpr (kTwo)
        made.set(i, body(from[i], too[i]));
      else
        made.set(i, body(from[i]));
    }
    made.write(y + at);
  });
}

template <typename Body>
void map(Number type, const void* x, const void* other, void* y, const Body& body, std::int64_t count,
         cudaStream_t stream) {
  for_type(type, [&]<typename T>() {
    start_elements(map_packs<T, Body>, (count + kPack<T> - 1) / kPack<T>, stream, static_cast<const T*>(x),
                   static_cast<const T*>(other), static_cast<T*>(y), body, count);
  });
}

struct Scale {
  static constexpr int kInputs = 1;
  float factor, bias;
  __device__ float operator()(float x) const { return factor * x + bias; }
};

struct Add {
  static constexpr int kInputs = 2;
  __device__ float operator()(float x, float y) const { return x + y; }
};

// To 0..highest. NaN stays NaN: every comparison with it is false.
struct Clamp {
  static constexpr int kInputs = 1;
  float highest;
  __device__ float operator()(float x) const { return x < 0.0F ? 0.0F : x > highest ? highest : x; }
};

struct ClampGradient {
  static constexpr int kInputs = 2;
  float highest;
  __device__ float operator()(float y, float dy) const { return y > 0.0F && y < highest ? dy : 0.0F; }
};

// Philox4x32-10 as in lib/runtime/tensor/philox.cpp.
__device__ void philox(std::uint64_t key, std::uint64_t high, std::uint64_t low, std::uint32_t (&x)[4]) {
  auto key0 = static_cast<std::uint32_t>(key), key1 = static_cast<std::uint32_t>(key >> 32);
  x[0] = static_cast<std::uint32_t>(low), x[1] = static_cast<std::uint32_t>(low >> 32);
  x[2] = static_cast<std::uint32_t>(high), x[3] = static_cast<std::uint32_t>(high >> 32);
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t product0 = std::uint64_t{0xD2511F53} * x[0];
    const std::uint64_t product1 = std::uint64_t{0xCD9E8D57} * x[2];
    const std::uint32_t next0 = static_cast<std::uint32_t>(product1 >> 32) ^ x[1] ^ key0;
    const std::uint32_t next2 = static_cast<std::uint32_t>(product0 >> 32) ^ x[3] ^ key1;
    x[1] = static_cast<std::uint32_t>(product1), x[3] = static_cast<std::uint32_t>(product0);
    x[0] = next0, x[2] = next2;
    key0 += 0x9E3779B9, key1 += 0xBB67AE85;
  }
}

// b bytes read and b written per element. Predicted share of the memory bandwidth: 0.5 in f32 and 0.3 in f16 and bf16,
// because a thread moves its four elements one by one and computes a random word for each.
template <typename T>
__global__ void drop_elements(const T* x, T* y, Drop drop, std::int64_t elements, std::int64_t blocks) {
  FLEETRUN_EACH(block, blocks) {
    std::uint32_t words[4];
    philox(drop.seed, drop.high, static_cast<std::uint64_t>(block), words);
    for (int i = 0; i < 4; ++i) {
      const std::int64_t at = block * 4 + i;
      if (at < elements)
        y[at] = static_cast<T>(words[i] < drop.below ? 0.0F : static_cast<float>(x[at]) * drop.scale);
    }
  }
}

// b bytes read and b written per element. Predicted share of the memory bandwidth: 0.5 for elements of 4 bytes and 0.25
// for those of 2, because each needs a division of 64-bit numbers.
template <typename T>
__global__ void join_runs(const T* x, const T* y, T* joined, Runs runs, std::int64_t count) {
  FLEETRUN_EACH(i, count) {
    const std::int64_t row = i / (runs.x + runs.y), at = i % (runs.x + runs.y);
    joined[i] = at < runs.x ? x[row * runs.x + at] : y[row * runs.y + at - runs.x];
  }
}

// b bytes read and b written per element. Predicted share of the memory bandwidth: 0.5 for elements of 4 bytes and 0.25
// for those of 2, because each needs a division of 64-bit numbers.
template <typename T>
__global__ void part_runs(const T* joined, T* x, T* y, Runs runs, std::int64_t count) {
  FLEETRUN_EACH(i, count) {
    const std::int64_t row = i / (runs.x + runs.y), at = i % (runs.x + runs.y);
    T& to = at < runs.x ? x[row * runs.x + at] : y[row * runs.y + at - runs.x];
    to = joined[i];
  }
}

}  // namespace

// 4 bytes written per element. Predicted share of the memory bandwidth: 0.83.
void fill(float* y, float value, std::int64_t count, cudaStream_t stream) {
  run_each(count, stream, [=] __device__(std::int64_t i) { y[i] = value; });
}

// 4 bytes written per element. Predicted share of the memory bandwidth: 0.83.
void fill_from(float* y, const float* value, float divisor, std::int64_t count, cudaStream_t stream) {
  run_each(count, stream, [=] __device__(std::int64_t i) { y[i] = *value / divisor; });
}

void scale(Number type, const void* x, void* y, float factor, float bias, std::int64_t count,
           cudaStream_t stream) {
  map(type, x, nullptr, y, Scale{factor, bias}, count, stream);
}

// 4 bytes read and 4 written per element. Predicted share of the memory bandwidth: 0.7, because a thread moves one
// element at a time.
void scale_from(const float* x, const float* factor, float divisor, float* y, std::int64_t count,
                cudaStream_t stream) {
  run_each(count, stream, [=] __device__(std::int64_t i) { y[i] = x[i] * (*factor / divisor); });
}

void add(Number type, const void* x, const void* y, void* sum, std::int64_t count, cudaStream_t stream) {
  map(type, x, y, sum, Add(), count, stream);
}

void clamp(Number type, const void* x, void* y, float highest, std::int64_t count, cudaStream_t stream) {
  map(type, x, nullptr, y, Clamp{highest}, count, stream);
}

void clamp_grad(Number type, const void* y, const void* dy, void* dx, float highest, std::int64_t count,
                cudaStream_t stream) {
  map(type, y, dy, dx, ClampGradient{highest}, count, stream);
}

void dropout(Number type, const void* x, void* y, const Drop& drop, std::int64_t count, cudaStream_t stream) {
  for_type(type, [&]<typename T>() {
    start_elements(drop_elements<T>, (count + 3) / 4, stream, static_cast<const T*>(x), static_cast<T*>(y),
                   drop, count);
  });
}

void join(int bytes, const void* x, const void* y, void* joined, const Runs& runs, cudaStream_t stream) {
  for_bytes(bytes, [&]<typename T>() {
    start_elements(join_runs<T>, runs.rows * (runs.x + runs.y), stream, static_cast<const T*>(x),
                   static_cast<const T*>(y), static_cast<T*>(joined), runs);
  });
}

void part(int bytes, const void* joined, void* x, void* y, const Runs& runs, cudaStream_t stream) {
  for_bytes(bytes, [&]<typename T>() {
    start_elements(part_runs<T>, runs.rows * (runs.x + runs.y), stream, static_cast<const T*>(joined),
                   static_cast<T*>(x), static_cast<T*>(y), runs);
  });
}

}  // namespace fleetrun::cuda
