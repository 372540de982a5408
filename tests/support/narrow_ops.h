// Ops that have kernels in f16 or bf16: what strategy.amp makes narrow of them, and how far their results may then be off.
#pragma once
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "base/error/error.h"
#include "runtime/graph/builder.h"
#include "runtime/passes/amp_lists.h"

namespace fleetrun::runtime::test {

inline bool can_be_narrow(const std::string& op) {
  try {
    job::AmpSpec amp;
    amp.custom_white_list = {op};
    const AmpLists lists(amp);
    return true;
  } catch (const Error&) {
    return false;  // it computes in f32 only, or is on no list
  }
}

// The factors and statistics of batch norms are f32 beside narrow images.
inline bool stays_wide(std::string_view op, std::string_view input) {
  return op.starts_with("batch_norm") &&
         (input == "scale" || input == "bias" || input == "mean" || input == "variance");
}

// Half a unit in the last place, of 1: bf16 has 8 bits, f16 has 11.
inline double rounding_of(DType type) { return type == DType::bf16 ? 1.0 / 512 : 1.0 / 4096; }

inline ValueId cast(Builder& builder, ValueId id, DType type) {
  return builder.op(fmt::format("cast{}", builder.program().ops.size()), "cast", {{"x", id}},
                    {{"dtype", std::string(describe(type))}});
}

}  // namespace fleetrun::runtime::test
