// Element types of tensors and of collectives.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace fleetrun {

enum class DType : std::uint8_t { f32, f16, bf16, i32, i64, u8 };

std::size_t size_of(DType dtype);        // bytes of one element
std::string_view describe(DType dtype);  // "f32", "bf16", ...
std::optional<DType> parse_dtype(std::string_view text);

// The nearest number that an element can hold, of f32, f16 or bf16.
float rounded_to(DType dtype, float value);

}  // namespace fleetrun
