#include "comm/reduce.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "base/half.h"

namespace fleetrun::comm {
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

}  // namespace
}  // namespace fleetrun::comm
