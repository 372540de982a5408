#include "comm/reduce.h"

#include <algorithm>
#include <cstdint>

#include <fmt/format.h>

#include "base/error.h"
#include "base/half.h"

namespace fleetrun::comm {
namespace {

// How elements are kept in memory, and the type that they are computed in.
template <typename T>
struct Plain {
  using Stored = T;
  static T load(T value) { return value; }
  static T store(T value) { return value; }
};
struct F16 {
  using Stored = std::uint16_t;
  static float load(Stored bits) { return f16_to_f32(bits); }
  static Stored store(float value) { return f32_to_f16(value); }
};
struct Bf16 {
  using Stored = std::uint16_t;
  static float load(Stored bits) { return bf16_to_f32(bits); }
  static Stored store(float value) { return f32_to_bf16(value); }
};

// Integers wrap around instead of overflowing.
struct Sum {
  float operator()(float a, float b) const { return a + b; }
  std::int32_t operator()(std::int32_t a, std::int32_t b) const {
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(a) + static_cast<std::uint32_t>(b));
  }
  std::int64_t operator()(std::int64_t a, std::int64_t b) const {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
  }
};
// A NaN on either side wins, so that no rank's NaN gets lost.
struct Max {
  template <typename T>
  T operator()(T a, T b) const {
    return a != a || a > b ? a : b;
  }
};
struct Min {
  template <typename T>
  T operator()(T a, T b) const {
    return a != a || a < b ? a : b;
  }
};

template <typename Format, typename Op>
void reduce(void* out, const void* a, const void* b, std::size_t count) {
  using Stored = typename Format::Stored;
  auto* to = static_cast<Stored*>(out);
  const auto* left = static_cast<const Stored*>(a);
  const auto* right = static_cast<const Stored*>(b);
  for (std::size_t i = 0; i < count; ++i)
    to[i] = Format::store(Op()(Format::load(left[i]), Format::load(right[i])));
}

template <typename Format>
ReduceFunction choose(ReduceOp op) {
  switch (op) {
    case ReduceOp::sum:
      return reduce<Format, Sum>;
    case ReduceOp::max:
      return reduce<Format, Max>;
    case ReduceOp::min:
      return reduce<Format, Min>;
  }
  throw Error(ErrorKind::internal, "an unknown reduction");
}

}  // namespace

ReduceFunction reduce_function(DType dtype, ReduceOp op) {
  switch (dtype) {
    case DType::f32:
      return choose<Plain<float>>(op);
    case DType::f16:
      return choose<F16>(op);
    case DType::bf16:
      return choose<Bf16>(op);
    case DType::i32:
      return choose<Plain<std::int32_t>>(op);
    case DType::i64:
      return choose<Plain<std::int64_t>>(op);
    case DType::u8:
      break;
  }
  throw Error(ErrorKind::internal, fmt::format("{} cannot be reduced", describe(dtype)));
}

}  // namespace fleetrun::comm
