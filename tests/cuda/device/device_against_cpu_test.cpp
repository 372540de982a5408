// The test's device beside the CPU, op for op and in a whole step, where a layout flows from op to op.
#include <doctest/doctest.h>

#include <cstring>
#include <limits>

#include "base/error/error.h"
#include "support/like_cpu.h"
#include "support/run_op.h"
#include "support/small_net.h"

namespace fleetrun::runtime::device_against_cpu_test {
namespace {

using test::check_like_cpu;
using test::Floats;
using test::HowFar;
using test::numbers;
using test::OpRun;
using test::ProgramRun;

TEST_CASE("a step of a network with convolutions, pooling and batch_norm leaves what it leaves on the CPU") {
  check_like_cpu(test::small_net(3));
}

ValueId framed(Builder& builder, const std::string& name, ValueId x, std::int64_t out) {
  Attributes attributes = test::convolution(2, 0);
  attributes["paddings"] = Shape{0, 1, 2, 1};
  const std::int64_t in = builder.program().value(x).shape[1];
  return builder.op(name, "conv2d", {{"x", x}, {"w", builder.parameter(name + ".w", {out, in, 3, 3}, {})}},
                    attributes);
}

TEST_CASE(
    "joined images, padding that differs from side to side, and windows over the edge, forward and backward") {
  for (const bool exclusive : {true, false}) {
    CAPTURE(exclusive);
    Program program;
    Builder builder(program, all_ops());
    const ValueId image = builder.feed("image", {3, 5, 9, 7});
    const ValueId left = framed(builder, "left", image, 6), right = framed(builder, "right", image, 4);
    ValueId x = builder.op("joined", "concat", {{"x", left}, {"y", right}}, {{"axis", std::int64_t{1}}});
    x = builder.op("relu6", "relu6", {{"x", x}}, {{"threshold", 0.5}});
    const ValueId twice = builder.op("twice", "scale", {{"x", x}}, {{"scale", 2.0}, {"bias", 0.5}});
    x = builder.op("sum", "elementwise_add", {{"x", twice}, {"y", x}});
    Attributes windows = test::pooling("average");
    windows["kernel"] = Shape{3, 2};
    windows["paddings"] = Shape{1, 1};
    windows["exclusive"] = exclusive;
    x = builder.op("average", "pool2d", {{"x", x}}, windows);
    windows["kind"] = std::string("max");
    windows["strides"] = Shape{1, 1};
    x = builder.op("max", "pool2d", {{"x", x}}, windows);
    const std::int64_t features = count_of(program.value(x).shape) / 3;
    x = builder.op("fc", "fc", {{"x", x}, {"w", builder.parameter("fc.w", {4, features}, {})}});
    append_backward(builder, builder.op("loss", "mean", {{"x", x}}));
    check_like_cpu(program);
  }
}

// The maximum over windows of an image with many equal elements. The convolution is one product for each element: the same
// bits on every device.
Program maxima(std::int64_t channels, const Shape& kernel, const std::string& dtype) {
  Program program;
  Builder builder(program, all_ops());
  const auto cast = [&](const std::string& name, ValueId x, const std::string& to) {
    return builder.op(name, "cast", {{"x", x}}, {{"dtype", to}});
  };
  const ValueId image = builder.feed("image", {2, 1, 21, 19});
  const ValueId w = builder.parameter("conv.w", {channels, 1, 1, 1}, {});
  ValueId x = builder.op("conv", "conv2d", {{"x", image}, {"w", w}}, test::convolution(1, 0));
  x = builder.op("relu6", "relu6", {{"x", x}}, {{"threshold", 0.0625}});
  Attributes windows = test::pooling("max");
  windows["kernel"] = kernel;
  windows["paddings"] = Shape{1, 0, 0, 1};
  const ValueId y = builder.op("max", "pool2d", {{"x", cast("narrow", x, dtype)}}, windows);
  const ValueId weights = cast("weights", builder.feed("dy", program.value(y).shape), dtype);
  const ValueId dx = builder.op("dx.narrow", "pool2d_grad",
                                {{"x", program.find("narrow")}, {"y", y}, {"dy", weights}}, windows);
  cast("y", y, "f32");
  cast("dx", dx, "f32");
  return program;
}

TEST_CASE("the first maximum of each window takes its gradient, in small and large windows") {
  for (const std::int64_t channels : {5, 16})
    for (const Shape& kernel : {Shape{3, 3}, Shape{2, 5}, Shape{17, 16}})
      for (const char* dtype : {"f32", "bf16"}) {
        CAPTURE(channels);
        CAPTURE(kernel[0]);
        CAPTURE(dtype);
        const HowFar rounding = {std::string(dtype) == "f32" ? 1e-6 : 1e-2, 0};
        check_like_cpu(maxima(channels, kernel, dtype), maxima(channels, kernel, dtype), rounding);
      }
}

TEST_CASE("a window with a NaN gives no gradient") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::map<std::string, test::Given> inputs = {{"x", {{1, 1, 2, 4}, Floats{1, nan, 3, 2, 5, 4, 3, 1}}},
                                                     {"y", {{1, 1, 1, 2}, Floats{nan, 3}}},
                                                     {"dy", {{1, 1, 1, 2}, Floats{7, 8}}}};
  const auto device = test::make_test_device();
  CHECK(OpRun("pool2d_grad", inputs, test::pooling("max"), *device).output("dx") ==
        Floats{0, 0, 8, 0, 0, 0, 0, 0});
}

TEST_CASE("dropout keeps what it keeps on the CPU, bit by bit") {
  constexpr std::int64_t kCount = 10'001;
  const std::map<std::string, test::Given> inputs = {{"x", {{kCount}, numbers("x", kCount)}}};
  const Attributes attributes = {{"p", 0.25}, {"key", std::int64_t{3}}};
  const auto device = test::make_test_device();
  const auto cpu = make_cpu_device();
  CHECK(OpRun("dropout", inputs, attributes, *device).output("y") ==
        OpRun("dropout", inputs, attributes, *cpu).output("y"));
}

TEST_CASE("casts round as on the CPU, bit by bit") {
  const Floats values = {0.0F, 1.0F, -1.0F / 3.0F, 1.00390625F, 1.01171875F, 65519.0F, 1e-7F, -3e38F};
  const auto device = test::make_test_device();
  const auto cpu = make_cpu_device();
  for (const char* dtype : {"bf16", "f16"}) {
    CAPTURE(dtype);
    Program program;
    Builder builder(program, all_ops());
    const ValueId x = builder.feed("x", {2, 4});
    const ValueId narrow = builder.op("narrow", "cast", {{"x", x}}, {{"dtype", std::string(dtype)}});
    const ValueId y = builder.op("y", "cast", {{"x", narrow}}, {{"dtype", std::string("f32")}});
    ProgramRun ours(program, all_ops(), *device), theirs(program, all_ops(), *cpu);
    for (ProgramRun* run : {&ours, &theirs}) {
      run->set(x, values);
      run->run();
    }
    CHECK(ours.get(y) == theirs.get(y));
  }
}

TEST_CASE("a value that a device keeps in its own layout comes back as it went in") {
  const auto device = test::make_test_device();
  Program program = test::small_net(3);
  ProgramRun run(program, all_ops(), *device);
  for (const ValueId id : program.of_kind(ValueKind::parameter)) {
    const Value& value = program.value(id);
    const Floats values = numbers(value.name, static_cast<std::size_t>(count_of(value.shape)));
    run.set(id, values);
    CHECK(run.get(id) == values);
  }
}

TEST_CASE("a label that is not a class is reported, with its sample") {
  const auto device = test::make_test_device();
  const std::map<std::string, test::Given> inputs = {{"logits", {{3, 4}, numbers("logits", 12)}},
                                                     {"label", {{3}, std::vector<std::int32_t>{1, 4, 0}}}};
  const auto told = [&] {
    try {
      OpRun(std::string("softmax_with_cross_entropy"), inputs, {}, *device).output("loss");
    } catch (const Error& error) {
      CHECK(error.kind() == ErrorKind::data);
      return error.message();
    }
    return std::string("nothing");
  }();
  CHECK(told.find("label 4") != std::string::npos);
  CHECK(told.find("there are 4 classes") != std::string::npos);
}

}  // namespace
}  // namespace fleetrun::runtime::device_against_cpu_test
