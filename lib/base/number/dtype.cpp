#include "base/number/dtype.h"

#include <array>

#include "base/number/half.h"

namespace fleetrun {
namespace {

struct DTypeFacts {
  DType dtype;
  std::string_view name;
  std::size_t bytes;
};

constexpr std::array<DTypeFacts, 6> kDTypes = {{{DType::f32, "f32", 4},
                                                {DType::f16, "f16", 2},
                                                {DType::bf16, "bf16", 2},
                                                {DType::i32, "i32", 4},
                                                {DType::i64, "i64", 8},
                                                {DType::u8, "u8", 1}}};

}  // namespace

std::size_t size_of(DType dtype) { return kDTypes.at(static_cast<std::size_t>(dtype)).bytes; }

std::string_view describe(DType dtype) { return kDTypes.at(static_cast<std::size_t>(dtype)).name; }

std::optional<DType> parse_dtype(std::string_view text) {
  for (const DTypeFacts& facts : kDTypes)
    if (facts.name == text) return facts.dtype;
  return std::nullopt;
}

float rounded_to(DType dtype, float value) {
  if (dtype == DType::f16) return f16_to_f32(f32_to_f16(value));
  if (dtype == DType::bf16) return bf16_to_f32(f32_to_bf16(value));
  return value;
}

}  // namespace fleetrun
