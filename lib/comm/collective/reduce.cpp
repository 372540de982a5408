#include "comm/collective/reduce.h"

#include <immintrin.h>

#include <fmt/format.h>

#include "base/error/error.h"
#include "comm/collective/reduce_loops.h"

#define FLEETRUN_AVX2 [[gnu::target("avx2,f16c")]]
#define FLEETRUN_AVX512 [[gnu::target("avx512f,avx512bw,avx512dq,avx512vl,f16c,prefer-vector-width=512")]]

namespace fleetrun::comm {
namespace {

// The same loops, compiled for one instruction set each.
template <typename Format, typename Op>
struct OnPlain {
  using T = typename Format::Stored;
  static void into(void* out, const void* a, const void* b, std::size_t count) {
    reduce_loop<Format, Op>(static_cast<T*>(out), static_cast<const T*>(a), static_cast<const T*>(b), count);
  }
  static void both(void* a, void* b, std::size_t count) {
    reduce_both_loop<Format, Op>(static_cast<T*>(a), static_cast<T*>(b), count);
  }
};

template <typename Format, typename Op>
struct OnAvx2 {
  using T = typename Format::Stored;
  FLEETRUN_AVX2 static void into(void* out, const void* a, const void* b, std::size_t count) {
    reduce_loop<Format, Op>(static_cast<T*>(out), static_cast<const T*>(a), static_cast<const T*>(b), count);
  }
  FLEETRUN_AVX2 static void both(void* a, void* b, std::size_t count) {
    reduce_both_loop<Format, Op>(static_cast<T*>(a), static_cast<T*>(b), count);
  }
};

template <typename Format, typename Op>
struct OnAvx512 {
  using T = typename Format::Stored;
  FLEETRUN_AVX512 static void into(void* out, const void* a, const void* b, std::size_t count) {
    reduce_loop<Format, Op>(static_cast<T*>(out), static_cast<const T*>(a), static_cast<const T*>(b), count);
  }
  FLEETRUN_AVX512 static void both(void* a, void* b, std::size_t count) {
    reduce_both_loop<Format, Op>(static_cast<T*>(a), static_cast<T*>(b), count);
  }
};

// f16 has instructions of its own to convert it, which compilers do not find: they are the loop here, and the
// arithmetic is that of f32 on a small block between them.
template <typename Op>
struct OnF16c {
  using T = std::uint16_t;
  static constexpr std::size_t kBlock = 128;  // elements
  static constexpr std::size_t kStep = 8;     // elements of one conversion

  FLEETRUN_AVX2 static void widen(float* to, const T* from) {
    for (std::size_t i = 0; i < kBlock; i += kStep)
      _mm256_store_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i))));
  }
  FLEETRUN_AVX2 static void narrow(T* to, const float* from) {
    for (std::size_t i = 0; i < kBlock; i += kStep)
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i),
                       _mm256_cvtps_ph(_mm256_load_ps(from + i), _MM_FROUND_TO_NEAREST_INT));
  }
  FLEETRUN_AVX2 static void block(float* result, const T* a, const T* b) {
    alignas(32) float right[kBlock];
    widen(result, a);
    widen(right, b);
    reduce_loop<Plain<float>, Op>(result, result, right, kBlock);
  }

  FLEETRUN_AVX2 static void into(void* out, const void* a, const void* b, std::size_t count) {
    auto* to = static_cast<T*>(out);
    const auto* left = static_cast<const T*>(a);
    const auto* right = static_cast<const T*>(b);
    alignas(32) float result[kBlock];
    std::size_t i = 0;
    for (; i + kBlock <= count; i += kBlock) {
      block(result, left + i, right + i);
      narrow(to + i, result);
    }
    reduce_loop<F16, Op>(to + i, left + i, right + i, count - i);
  }
  FLEETRUN_AVX2 static void both(void* a, void* b, std::size_t count) {
    auto* left = static_cast<T*>(a);
    auto* right = static_cast<T*>(b);
    alignas(32) float result[kBlock];
    std::size_t i = 0;
    for (; i + kBlock <= count; i += kBlock) {
      block(result, left + i, right + i);
      narrow(left + i, result);
      narrow(right + i, result);
    }
    reduce_both_loop<F16, Op>(left + i, right + i, count - i);
  }
};

template <typename Loops>
Reduction functions_of() {
  return {Loops::into, Loops::both};
}

template <typename Format, typename Op>
Reduction choose_level(VectorLevel level) {
  switch (level) {
    case VectorLevel::avx512:
    case VectorLevel::avx512_bf16:
      return functions_of<OnAvx512<Format, Op>>();
    case VectorLevel::avx2:
      return functions_of<OnAvx2<Format, Op>>();
    case VectorLevel::baseline:
      break;
  }
  return functions_of<OnPlain<Format, Op>>();
}

template <typename Format, typename Op>
requires std::is_same_v<Format, F16> Reduction choose_level(VectorLevel level) {
  return level == VectorLevel::baseline ? functions_of<OnPlain<F16, Op>>() : functions_of<OnF16c<Op>>();
}

template <typename Format>
Reduction choose(ReduceOp op, VectorLevel level) {
  switch (op) {
    case ReduceOp::sum:
      return choose_level<Format, Sum>(level);
    case ReduceOp::max:
      return choose_level<Format, Max>(level);
    case ReduceOp::min:
      return choose_level<Format, Min>(level);
  }
  throw Error(ErrorKind::internal, "an unknown reduction");
}

}  // namespace

Reduction reduction(DType dtype, ReduceOp op, VectorLevel level) {
  switch (dtype) {
    case DType::f32:
      return choose<Plain<float>>(op, level);
    case DType::f16:
      return choose<F16>(op, level);
    case DType::bf16:
      return choose<Bf16>(op, level);
    case DType::i32:
      return choose<Plain<std::int32_t>>(op, level);
    case DType::i64:
      return choose<Plain<std::int64_t>>(op, level);
    case DType::u8:
      break;
  }
  throw Error(ErrorKind::internal, fmt::format("{} cannot be reduced", describe(dtype)));
}

ReduceFunction reduce_function(DType dtype, ReduceOp op) { return reduction(dtype, op).into; }

}  // namespace fleetrun::comm
