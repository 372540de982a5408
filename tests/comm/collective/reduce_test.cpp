#include "comm/collective/reduce.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "base/number/half.h"

namespace fleetrun::comm::reduce_test {
namespace {

template <typename T>
T reduce_one(DType dtype, ReduceOp op, T a, T b) {
  reduce_function(dtype, op)(&a, &a, &b, 1);
  return a;
}

TEST_CASE("integers wrap around") {
  const auto max32 = std::numeric_limits<std::int32_t>::max();
  CHECK(reduce_one(DType::i32, ReduceOp::sum, max32, std::int32_t{1}) ==
        std::numeric_limits<std::int32_t>::min());
  const auto max64 = std::numeric_limits<std::int64_t>::max();
  CHECK(reduce_one(DType::i64, ReduceOp::sum, max64, std::int64_t{1}) ==
        std::numeric_limits<std::int64_t>::min());
  CHECK(reduce_one(DType::i64, ReduceOp::max, std::int64_t{-5}, std::int64_t{1} << 40) == std::int64_t{1}
                                                                                              << 40);
}

TEST_CASE("a NaN on either side is kept by every operation") {
  const float nan = std::nanf("");
  for (const ReduceOp op : {ReduceOp::sum, ReduceOp::max, ReduceOp::min}) {
    CHECK(std::isnan(reduce_one(DType::f32, op, nan, 1.0F)));
    CHECK(std::isnan(reduce_one(DType::f32, op, 1.0F, nan)));
    CHECK(std::isnan(bf16_to_f32(reduce_one(DType::bf16, op, f32_to_bf16(nan), f32_to_bf16(1)))));
    CHECK(std::isnan(f16_to_f32(reduce_one(DType::f16, op, f32_to_f16(1), f32_to_f16(nan)))));
  }
}

TEST_CASE("16-bit sums are computed in f32 and rounded once") {
  // 2048 + 1 is half way between two neighbours of f16 and goes to the even one; 256 + 1 likewise in bf16.
  CHECK(f16_to_f32(reduce_one(DType::f16, ReduceOp::sum, f32_to_f16(2048), f32_to_f16(1))) == 2048);
  CHECK(f16_to_f32(reduce_one(DType::f16, ReduceOp::sum, f32_to_f16(2048), f32_to_f16(1.5F))) == 2050);
  CHECK(bf16_to_f32(reduce_one(DType::bf16, ReduceOp::sum, f32_to_bf16(256), f32_to_bf16(1))) == 256);
  CHECK(bf16_to_f32(reduce_one(DType::bf16, ReduceOp::sum, f32_to_bf16(256), f32_to_bf16(1.5F))) == 258);
  CHECK(std::isinf(f16_to_f32(reduce_one(DType::f16, ReduceOp::sum, f32_to_f16(60000), f32_to_f16(60000)))));
}

// Every bit pattern of a 16-bit format is among them, for both operands.
template <typename T>
std::vector<T> patterns(std::size_t count, std::uint64_t factor) {
  std::vector<T> values(count);
  std::uint64_t state = 1;
  for (T& value : values) {
    state = state * 6364136223846793005U + factor;
    std::memcpy(&value, reinterpret_cast<const std::byte*>(&state) + 8 - sizeof(T), sizeof(T));
  }
  return values;
}

bool is_nan(DType dtype, const void* value) {
  if (dtype == DType::f32) return std::isnan(*static_cast<const float*>(value));
  const std::uint16_t bits = *static_cast<const std::uint16_t*>(value);
  return (dtype == DType::f16 && std::isnan(f16_to_f32(bits))) ||
         (dtype == DType::bf16 && std::isnan(bf16_to_f32(bits)));
}

template <typename T>
void check_same(DType dtype, const std::vector<T>& found, const std::vector<T>& wanted) {
  int different = 0;
  for (std::size_t i = 0; i < wanted.size(); ++i)
    if (std::memcmp(&found[i], &wanted[i], sizeof(T)) != 0 &&
        !(is_nan(dtype, &found[i]) && is_nan(dtype, &wanted[i])))
      ++different;
  CHECK(different == 0);
}

template <typename T>
void check_paths(DType dtype, std::size_t count) {
  const std::vector<T> a = patterns<T>(count, 1442695040888963407U);
  const std::vector<T> b = patterns<T>(count, 1234567890123456789U);
  for (const ReduceOp op : {ReduceOp::sum, ReduceOp::max, ReduceOp::min}) {
    std::vector<T> wanted(count);
    reduction(dtype, op, VectorLevel::baseline).into(wanted.data(), a.data(), b.data(), count);
    for (const VectorLevel level : {VectorLevel::baseline, VectorLevel::avx2, VectorLevel::avx512}) {
      if (level > vector_level()) continue;
      CAPTURE(dtype);
      CAPTURE(op);
      CAPTURE(describe(level));
      const Reduction reduce = reduction(dtype, op, level);
      std::vector<T> left = a;
      std::vector<T> right = b;
      reduce.into(left.data(), left.data(), right.data(), count);
      check_same(dtype, left, wanted);
      left = a;
      reduce.into(right.data(), left.data(), right.data(), count);
      check_same(dtype, right, wanted);
      right = b;
      reduce.both(left.data(), right.data(), count);
      check_same(dtype, left, wanted);
      check_same(dtype, right, wanted);
    }
  }
}

TEST_CASE("every vector level gives the same bits, with the result in place of either operand") {
  for (const std::size_t count : {0, 1, 15, 129, 20'003}) {
    CAPTURE(count);
    check_paths<float>(DType::f32, count);
    check_paths<std::uint16_t>(DType::f16, count);
    check_paths<std::uint16_t>(DType::bf16, count);
    check_paths<std::int32_t>(DType::i32, count);
    check_paths<std::int64_t>(DType::i64, count);
  }
}

}  // namespace
}  // namespace fleetrun::comm::reduce_test
