// Casts the elements as they lie; oneDNN 2.6 has no f16 on the processor.
#include <dnnl.h>

#include "base/half.h"
#include "runtime/kernels/cpu/cpu_device.h"
#include "runtime/kernels/cpu/elementwise.h"

namespace fleetrun::runtime::cpu {
namespace {

struct F32 {
  using Stored = float;
  static float widen(float stored) { return stored; }
  static float narrow(float value) { return value; }
};
struct F16 {
  using Stored = std::uint16_t;
  static float widen(std::uint16_t stored) { return f16_to_f32(stored); }
  static std::uint16_t narrow(float value) { return f32_to_f16(value); }
};
struct Bf16 {
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
      return cast_range<From, F16>;
    case DType::bf16:
      return cast_range<From, Bf16>;
    default:
      return cast_range<From, F32>;
  }
}

CastRange range_of(DType from, DType to) {
  switch (from) {
    case DType::f16:
      return cast_from<F16>(to);
    case DType::bf16:
      return cast_from<Bf16>(to);
    default:
      return cast_from<F32>(to);
  }
}

std::unique_ptr<Kernel> make_cast(const OpView& op, Device&) {
  const Value& x = op.input("x");
  const auto count = static_cast<std::int64_t>(x.bytes() / size_of(x.dtype));
  return simple_kernel([range = range_of(x.dtype, op.output("y").dtype), count, from = op.input_id("x"),
                        to = op.output_id("y")](const RunContext& context) {
    parallel_for(count, kElementsPerThread, [&](std::int64_t begin, std::int64_t end) {
      range(context.data[from], context.data[to], begin, end);
    });
  });
}

// The layout of x with elements of another type.
Layout with_dtype(const Value& x, DType dtype) {
  if (x.layout.plain()) return {};
  Descriptor descriptor = descriptor_of(x);
  descriptor.data_type = row_major({1}, dtype).data_type;
  return {.name = x.layout.name,
          .descriptor = std::string(reinterpret_cast<const char*>(&descriptor), sizeof descriptor),
          .bytes = dnnl_memory_desc_get_size(&descriptor)};
}

LayoutChoice choose_cast(const LayoutQuery& query, Device&) {
  const Value& x = query.op.input("x");
  return {{x.layout}, {with_dtype(x, query.op.output("y").dtype)}};
}

}  // namespace

KernelDef cast_kernel() { return {.choose_layouts = choose_cast, .make = make_cast}; }

}  // namespace fleetrun::runtime::cpu
