#include <doctest/doctest.h>

#include <limits>

#include "base/number/half.h"
#include "support/run_program.h"
#include "support/small_net.h"

namespace fleetrun::runtime::cast_test {
namespace {

using test::Floats;
using test::ProgramRun;

// x -> `narrow` -> f32.
struct ThereAndBack {
  Program program;
  ValueId x, narrow, y;

  explicit ThereAndBack(const std::string& dtype, const Shape& shape) {
    Builder builder(program, all_ops());
    x = builder.feed("x", shape);
    narrow = builder.op("narrow", "cast", {{"x", x}}, {{"dtype", dtype}});
    y = builder.op("y", "cast", {{"x", narrow}}, {{"dtype", std::string("f32")}});
  }
};

const Floats kValues = {0.0F,         1.0F,
                        -1.0F / 3.0F,
                        1.00390625F,  // halfway between two bf16
                        1.01171875F,  // the next such one, whose even neighbour is above
                        65519.0F,     // the largest that rounds to a finite f16
                        1e-7F,        -std::numeric_limits<float>::infinity()};

TEST_CASE("a cast rounds to the nearest, ties to even") {
  const auto device = make_cpu_device();
  for (const char* dtype : {"bf16", "f16"}) {
    const ThereAndBack cast(dtype, {2, 4});
    ProgramRun run(cast.program, all_ops(), *device);
    run.set(cast.x, kValues);
    run.run();
    const Floats got = run.get(cast.y);
    const bool bf16 = std::string(dtype) == "bf16";
    for (std::size_t i = 0; i < kValues.size(); ++i) {
      INFO(dtype << " of " << kValues[i]);
      CHECK(got[i] == (bf16 ? bf16_to_f32(f32_to_bf16(kValues[i])) : f16_to_f32(f32_to_f16(kValues[i]))));
    }
    CHECK(run.program().value(cast.narrow).bytes() == 2 * kValues.size());
    if (bf16) {
      CHECK(got[3] == 1.0F);
      CHECK(got[4] == 1.015625F);
    }
  }
}

TEST_CASE("a cast keeps the layout, and its gradient comes back in the type of x") {
  const auto device = make_cpu_device();
  Program program;
  Builder builder(program, all_ops());
  const ValueId image = builder.feed("image", {1, 3, 6, 6});
  const ValueId made = test::convolve(builder, "conv", image, 20, 3);
  const ValueId narrow = builder.op("narrow", "cast", {{"x", made}}, {{"dtype", std::string("bf16")}});
  const ValueId wide = builder.op("wide", "cast", {{"x", narrow}}, {{"dtype", std::string("f32")}});
  const ValueId flat =
      builder.op("fc", "fc", {{"x", wide}, {"w", builder.parameter("fc.w", {1, 20 * 36}, {})}});
  const ValueId label = builder.feed("label", {1}, DType::i32);
  const auto ce = builder.add(
      {.type = "softmax_with_cross_entropy", .inputs = {{"logits", flat}, {"label", label}}, .name = "ce"});
  append_backward(builder, builder.op("loss", "mean", {{"x", ce[1]}}));
  ProgramRun run(program, all_ops(), *device);
  const Program& placed = run.program();
  const Value& conv = placed.value(placed.find("conv"));
  CHECK(placed.value(placed.find("narrow")).layout.name == conv.layout.name);
  CHECK(placed.value(placed.find("wide")).layout == conv.layout);
  CHECK(placed.value(placed.find("narrow")).bytes() * 2 == conv.bytes());
  CHECK(placed.value(placed.find("narrow@GRAD")).dtype == DType::bf16);
  CHECK(placed.value(placed.find("conv@GRAD")).dtype == DType::f32);
  CHECK_NOTHROW(run.run());
}

}  // namespace
}  // namespace fleetrun::runtime::cast_test
