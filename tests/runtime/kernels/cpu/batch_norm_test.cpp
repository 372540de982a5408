#include <doctest/doctest.h>

#include <cmath>
#include <cstdlib>

#include "runtime/tensor/philox.h"
#include "support/leave_out.h"
#include "support/run_program.h"
#include "support/small_net.h"

namespace fleetrun::runtime::batch_norm_test {
namespace {

using test::Floats;
using test::ProgramRun;

bool blocks_of_16() {
  return __builtin_cpu_supports("avx512bw") && std::getenv("DNNL_MAX_CPU_ISA") == nullptr;
}

constexpr double kMomentum = 0.75;  // exact in f32

// conv bn relu with its gradients; evaluation: forward only.
Program chain(std::int64_t out_channels) {
  Program program;
  Builder builder(program, all_ops());
  const ValueId image = builder.feed("image", {2, 3, 8, 8});
  const ValueId y = builder.op(
      "relu", "relu",
      {{"x", test::normalise(builder, "bn", test::convolve(builder, "conv", image, out_channels, 3))}});
  const ValueId w = builder.parameter("fc.w", {1, out_channels * 64}, {});
  const ValueId logits = builder.op("fc", "fc", {{"x", y}, {"w", w}});
  const ValueId label = builder.feed("label", {2}, DType::i32);
  const auto ce = builder.add(
      {.type = "softmax_with_cross_entropy", .inputs = {{"logits", logits}, {"label", label}}, .name = "ce"});
  append_backward(builder, builder.op("loss", "mean", {{"x", ce[1]}}));
  return program;
}

std::string reorders_between(const Program& program, const std::string& first, const std::string& last) {
  std::string found;
  for (const Op& op : program.ops) {
    if (op.type != "reorder") continue;
    const std::string& name = program.value(op.inputs[0]).name;
    if (name == first || name == last || name.starts_with("bn")) found += name + " ";
  }
  return found;
}

TEST_CASE("conv, batch_norm and relu keep one blocked layout, forward and backward") {
  if (!blocks_of_16()) LEAVE_OUT("oneDNN has no blocks of 16 channels here: needs AVX-512");
  const auto device = make_cpu_device({.refuse_reference = true});
  for (const std::int64_t channels : {32, 20}) {  // 20: the last block is padded
    const ProgramRun run(chain(channels), all_ops(), *device);
    const Program& program = run.program();
    INFO(channels << " channels");
    for (const char* name : {"conv", "bn.y", "relu", "bn.y@GRAD", "conv@GRAD"}) {
      INFO(name);
      REQUIRE(program.find(name) != kNone);
      CHECK(program.value(program.find(name)).layout.name == "nChw16c");
    }
    for (const char* name : {"bn.mean", "bn.variance", "bn.scale"})
      CHECK(program.value(program.find(name)).layout.plain());
    CHECK(reorders_between(program, "conv", "conv@GRAD") == "");
  }
}

// batch_norm alone, with the running statistics as states.
struct Alone {
  Program program;
  ValueId x, y, mean, variance;

  explicit Alone(bool training) {
    Builder builder(program, all_ops());
    x = builder.feed("x", {2, 1, 1, 2});
    mean = builder.state("mean", {1}, {}, kNone);
    variance = builder.state("variance", {1}, {}, kNone);
    const std::vector<std::string> outputs =
        training ? std::vector<std::string>{} : std::vector<std::string>{"y"};
    y = builder
            .add({.type = "batch_norm",
                  .inputs = {{"x", x},
                             {"scale", builder.parameter("scale", {1}, {})},
                             {"bias", builder.parameter("bias", {1}, {})},
                             {"mean", mean},
                             {"variance", variance}},
                  .attributes = {{"epsilon", 1e-5}, {"momentum", kMomentum}, {"training", training}},
                  .name = "bn",
                  .outputs = outputs})
            .front();
  }

  ProgramRun start(Device& device) const {
    ProgramRun run(program, all_ops(), device);
    run.set(x, Floats{1, 3, 5, 7});  // mean 4, variance 5 (biased)
    run.set(program.find("scale"), Floats{2});
    run.set(program.find("bias"), Floats{1});
    run.set(mean, Floats{8});
    run.set(variance, Floats{1});
    return run;
  }
};

TEST_CASE("training moves the running statistics by the biased variance, once a run") {
  const auto device = make_cpu_device();
  const Alone alone(true);
  ProgramRun run = alone.start(*device);
  double mean = 8, variance = 1;
  for (int step = 0; step < 3; ++step) {
    run.run();
    mean = mean * kMomentum + 4 * (1 - kMomentum);
    variance = variance * kMomentum + 5 * (1 - kMomentum);
    CHECK(run.get(alone.mean)[0] == doctest::Approx(mean).epsilon(1e-6));
    CHECK(run.get(alone.variance)[0] == doctest::Approx(variance).epsilon(1e-6));
  }
  CHECK(run.get(alone.y)[3] == doctest::Approx((7 - 4) / std::sqrt(5 + 1e-5) * 2 + 1));
}

TEST_CASE("evaluation uses the running statistics and leaves them") {
  const auto device = make_cpu_device();
  const Alone alone(false);
  ProgramRun run = alone.start(*device);
  run.run();
  CHECK(run.get(alone.y)[3] == doctest::Approx((7 - 8) / std::sqrt(1 + 1e-5) * 2 + 1));
  CHECK(run.get(alone.mean)[0] == 8.0F);
  CHECK(run.get(alone.variance)[0] == 1.0F);
}

// The statistics that batch_norm finds for images whose channels lie far from 0, computed anew in f64.
TEST_CASE("the statistics of a large batch are as exact as f32 can hold them, however the image lies") {
  const auto device = make_cpu_device();
  for (const bool blocked : {false, true}) {
    INFO(blocked << " blocked");
    Program program;
    Builder builder(program, all_ops());
    const ValueId image = builder.feed("image", {16, 16, 67, 61});
    // A convolution of size 1 that multiplies by 1 leaves the image in its own layout.
    const ValueId w = builder.parameter("w", {16, 16, 1, 1}, {});
    const ValueId x =
        blocked ? builder.op("conv", "conv2d", {{"x", image}, {"w", w}}, test::convolution(1, 0)) : image;
    test::normalise(builder, "bn", x);
    const ValueId mean = program.find("bn.batch_mean"), variance = program.find("bn.batch_variance");
    REQUIRE(mean != kNone);
    ProgramRun run(program, all_ops(), *device);
    Floats unit(16 * 16);
    for (std::size_t c = 0; c < 16; ++c) unit[c * 17] = 1;
    run.set(w, unit);
    run.set(program.find("bn.scale"), Floats(16, 1.0F));
    constexpr std::size_t kPixels = 67 * 61;
    Floats values(16 * 16 * kPixels);
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = 10.0F + unit_float(philox(1, 2, i)[0]) * static_cast<float>(1 + i / kPixels % 16);
    run.set(image, values);
    run.run();
    for (std::size_t c = 0; c < 16; ++c) {
      double sum = 0, squares = 0;
      const auto each = [&](auto&& body) {
        for (std::size_t n = 0; n < 16; ++n)
          for (std::size_t p = 0; p < kPixels; ++p) body(double{values[(n * 16 + c) * kPixels + p]});
      };
      each([&](double value) { sum += value; });
      const double exact = sum / (16 * kPixels);
      each([&](double value) { squares += (value - exact) * (value - exact); });
      constexpr double kRounding = 1.2e-7;  // of f32: a unit in the last place
      CHECK(std::abs(run.get(mean)[c] / exact - 1) < kRounding);
      CHECK(std::abs(run.get(variance)[c] / (squares / (16 * kPixels)) - 1) < kRounding);
    }
  }
}

}  // namespace
}  // namespace fleetrun::runtime::batch_norm_test
