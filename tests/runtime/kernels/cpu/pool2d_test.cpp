#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "runtime/kernels/cpu/loops/channel_blocks.h"
#include "support/run_op.h"
#include "support/small_net.h"

namespace fleetrun::runtime::pool2d_test {
namespace {

using test::Floats;

// The image in the layout that a convolution made, through relu so that nothing else decides.
Layout blocked_layout(const Shape& image) {
  if (!__builtin_cpu_supports("avx512bw")) return {};
  const auto device = make_cpu_device();
  Program program;
  Builder builder(program, all_ops());
  const ValueId x = builder.feed("x", image);
  const ValueId w = builder.parameter("w", {image[1], image[1], 1, 1}, {});
  builder.op("y", "conv2d", {{"x", x}, {"w", w}}, test::convolution(1, 0));
  return test::ProgramRun(program, all_ops(), *device).program().value(program.find("y")).layout;
}

TEST_CASE("a plain image is one channel after the other, a blocked one 16 channels side by side") {
  Value image = {.name = "x", .shape = {2, 20, 5, 3}};
  CHECK(cpu::channel_blocks(image)->outer == 40);
  CHECK(cpu::channel_blocks(image)->inner == 1);
  image.layout = blocked_layout(image.shape);
  if (image.layout.plain()) return;
  CHECK(cpu::channel_blocks(image)->outer == 4);  // 20 channels are padded to 32
  CHECK(cpu::channel_blocks(image)->inner == 16);
  CHECK(cpu::resized_layout(image, image.shape) == image.layout);
  const Shape smaller = {2, 20, 2, 1};
  CHECK(cpu::resized_layout(image, smaller) == blocked_layout(smaller));
}

TEST_CASE("a maximum over something that is not a number is none") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (std::size_t place = 0; place < 4; ++place) {
    Floats x = {1, 2, 3, 4};
    x[place] = nan;
    CHECK(std::isnan(test::run_op("pool2d", {{"x", {{1, 1, 2, 2}, x}}}, test::pooling("max"))[0]));
  }
}

}  // namespace
}  // namespace fleetrun::runtime::pool2d_test
