// Convolutions of few channels in narrow types, which a device may compute with channels of zeros added, beside the CPU in f32.
#include <doctest/doctest.h>

#include "runtime/graph/builder.h"
#include "support/like_cpu.h"

namespace fleetrun::runtime::padded_convolutions_test {
namespace {

using test::HowFar;

struct Case {
  Shape x, w;
  Attributes settings;
};

std::vector<Case> cases() {
  const auto settings = [](const Shape& strides, const Shape& paddings, const Shape& dilations) {
    return Attributes{
        {"strides", strides}, {"paddings", paddings}, {"dilations", dilations}, {"groups", std::int64_t{1}}};
  };
  return {{{2, 3, 13, 11}, {8, 3, 7, 7}, settings({2, 2}, {3, 3}, {1, 1})},
          {{3, 3, 9, 8}, {6, 3, 3, 2}, settings({1, 2}, {0, 1, 2, 1}, {1, 1})},
          {{2, 5, 9, 7}, {16, 5, 3, 3}, settings({1, 1}, {1, 1}, {1, 1})},
          {{3, 5, 10, 12}, {10, 5, 3, 3}, settings({2, 1}, {2, 0, 0, 1}, {1, 2})},
          {{2, 1, 8, 8}, {8, 1, 5, 5}, settings({1, 1}, {2, 2}, {1, 1})},
          {{2, 12, 7, 7}, {8, 12, 1, 1}, settings({1, 1}, {0, 0}, {1, 1})}};
}

// A convolution and its gradients in `dtype`, of and into values in f32.
Program in_type(const Case& one, const std::string& dtype) {
  Program program;
  Builder builder(program, all_ops());
  const auto cast = [&](const std::string& name, ValueId x, const std::string& to) {
    return builder.op(name, "cast", {{"x", x}}, {{"dtype", to}});
  };
  const ValueId x = cast("x.narrow", builder.feed("x", one.x), dtype);
  const ValueId w = cast("w.narrow", builder.parameter("w", one.w, {}), dtype);
  const ValueId y = builder.op("y.narrow", "conv2d", {{"x", x}, {"w", w}}, one.settings);
  cast("y", y, "f32");
  const ValueId dy = cast("dy.narrow", builder.feed("dy", program.value(y).shape), dtype);
  Attributes settings = one.settings;
  settings["input_shape"] = one.x;
  settings["weight_shape"] = one.w;
  cast("dx", builder.op("dx.narrow", "conv2d_grad_input", {{"dy", dy}, {"w", w}}, settings), "f32");
  cast("dw", builder.op("dw.narrow", "conv2d_grad_weights", {{"x", x}, {"dy", dy}}, settings), "f32");
  return program;
}

TEST_CASE("convolutions of few channels in narrow types and their gradients are those of the CPU in f32") {
  std::vector<std::pair<std::string, HowFar>> types = {{"f32", {}}, {"bf16", {1e-2, 1e-3}}};
  if (test::make_test_device()->name() != "CPU") types.push_back({"f16", {2e-3, 1e-4}});
  for (const Case& one : cases())
    for (const auto& [dtype, far] : types) {
      CAPTURE(dtype);
      CAPTURE(one.x[1]);
      CAPTURE(one.w[2]);
      test::check_like_cpu(in_type(one, dtype), in_type(one, "f32"), far);
    }
}

}  // namespace
}  // namespace fleetrun::runtime::padded_convolutions_test
