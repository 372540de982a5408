// Casts the elements as they lie; oneDNN 2.6 has no f16 on the processor.
#include <span>
#include <utility>
#include <vector>

#include "base/number/half.h"
#include "runtime/kernels/cpu/loops/elementwise.h"
#include "runtime/kernels/cpu/loops/narrow.h"
#include "runtime/kernels/cpu/onednn/cpu_device.h"
#include "runtime/kernels/layout_choice.h"

namespace fleetrun::runtime::cpu {
namespace {

struct ElementF32 {
  using Stored = float;
  static float widen(float stored) { return stored; }
  static float narrow(float value) { return value; }
};
struct ElementF16 {
  using Stored = std::uint16_t;
  static float widen(std::uint16_t stored) { return f16_to_f32(stored); }
  static std::uint16_t narrow(float value) { return f32_to_f16(value); }
};
struct ElementBf16 {
  using Stored = std::uint16_t;
  static float widen(std::uint16_t stored) { return bf16_to_f32(stored); }
  static std::uint16_t narrow(float value) { return f32_to_bf16(value); }
};

using CastRange = void (*)(const void* x, void* y, std::int64_t begin, std::int64_t end);

template <typename From, typename To>
void cast_range(const void* x, void* y, std::int64_t begin, std::int64_t end) {
  const auto* const from = static_cast<const typename From::Stored*>(x);
  auto* const to = static_cast<typename To::Stored*>(y);
  for (std::int64_t i = begin; i < end; ++i) to[i] = To::narrow(From::widen(from[i]));
}

template <typename From>
CastRange cast_from(DType to) {
  switch (to) {
    case DType::f16:
      return cast_range<From, ElementF16>;
    case DType::bf16:
      return cast_range<From, ElementBf16>;
    default:
      return cast_range<From, ElementF32>;
  }
}

CastRange range_of(DType from, DType to) {
  switch (from) {
    case DType::f16:
      return cast_from<ElementF16>(to);
    case DType::bf16:
      return cast_from<ElementBf16>(to);
    default:
      return cast_from<ElementF32>(to);
  }
}

void widen_range(const void* x, void* y, std::int64_t begin, std::int64_t end) {
  widen(static_cast<const Bf16*>(x) + begin, static_cast<float*>(y) + begin, end - begin);
}

void narrow_range(const void* x, void* y, std::int64_t begin, std::int64_t end) {
  narrow(static_cast<const float*>(x) + begin, static_cast<Bf16*>(y) + begin, end - begin);
}

CastRange fastest_range(DType from, DType to) {
  if (from == DType::bf16 && to == DType::f32) return widen_range;
  if (from == DType::f32 && to == DType::bf16) return narrow_range;
  return range_of(from, to);
}

struct CastTensor {
  ValueId from, to;
  std::int64_t count;  // of elements
};

std::unique_ptr<Kernel> make_cast_of(const OpView& op, std::span<const ValueId> from,
                                     std::span<const ValueId> to) {
  const Program& program = op.program();
  std::vector<CastTensor> tensors;
  for (std::size_t i = 0; i < from.size(); ++i) {
    const Value& x = program.value(from[i]);
    tensors.push_back({from[i], to[i], static_cast<std::int64_t>(x.bytes() / size_of(x.dtype))});
  }
  const CastRange range = fastest_range(program.value(from.front()).dtype, program.value(to.front()).dtype);
  return simple_kernel([range, tensors = std::move(tensors)](const RunContext& context) {
    for (const CastTensor& tensor : tensors)
      parallel_for(tensor.count, kElementsPerThread, [&](std::int64_t begin, std::int64_t end) {
        range(context.data[tensor.from], context.data[tensor.to], begin, end);
      });
  });
}

std::unique_ptr<Kernel> make_cast(const OpView& op, Device&) {
  return make_cast_of(op, op.input_ids("x"), op.output_ids("y"));
}

std::unique_ptr<Kernel> make_cast_gradient(const OpView& op, Device&) {
  return make_cast_of(op, op.input_ids("grad"), op.output_ids("out"));
}

LayoutChoice choose_cast(const LayoutQuery& query, Device& device) {
  return as_casts_lie(query, device, layout_in);
}

LayoutChoice choose_cast_gradient(const LayoutQuery& query, Device&) {
  return as_parameters_lie(query, layout_in);
}

}  // namespace

KernelDef cast_gradient_kernel() {
  return {.choose_layouts = choose_cast_gradient, .make = make_cast_gradient};
}

KernelDef cast_kernel() {
  return {.choose_layouts = choose_cast, .make = make_cast, .waits_for_reader = true};
}

}  // namespace fleetrun::runtime::cpu
