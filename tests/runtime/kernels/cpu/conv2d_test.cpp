#include <doctest/doctest.h>

#include <cstdlib>

#include "runtime/graph/backward.h"
#include "runtime/graph/builder.h"
#include "support/run_program.h"

namespace fleetrun::runtime {
namespace {

using test::ProgramRun;

bool blocks_of_16() {
  return __builtin_cpu_supports("avx512bw") && std::getenv("DNNL_MAX_CPU_ISA") == nullptr;
}

Attributes window(std::int64_t stride, std::int64_t padding) {
  return {{"strides", Shape{stride, stride}},
          {"paddings", Shape{padding, padding}},
          {"dilations", Shape{1, 1}},
          {"groups", std::int64_t{1}}};
}

Attributes pooling(const std::string& kind) {
  return {{"kind", kind},
          {"kernel", Shape{2, 2}},
          {"strides", Shape{2, 2}},
          {"paddings", Shape{0, 0}},
          {"exclusive", true}};
}

ValueId conv(Builder& builder, const std::string& name, ValueId x, std::int64_t out, std::int64_t kernel) {
  const std::int64_t in = builder.program().value(x).shape[1];
  const ValueId w = builder.parameter(name + ".w", {out, in, kernel, kernel}, {});
  const ValueId b = builder.parameter(name + ".b", {out}, {});
  return builder.op(name, "conv2d", {{"x", x}, {"w", w}, {"b", b}}, window(1, kernel / 2));
}

// conv relu pool conv relu fc loss mean on images of `channels`
Program small_net(std::int64_t channels) {
  Program program;
  Builder builder(program, all_ops());
  const ValueId image = builder.feed("image", {4, channels, 16, 16});
  const ValueId label = builder.feed("label", {4}, DType::i32);
  ValueId x = builder.op("relu1", "relu", {{"x", conv(builder, "conv1", image, 32, 5)}});
  x = builder.op("pool1", "pool2d", {{"x", x}}, pooling("max"));
  x = builder.op("relu2", "relu", {{"x", conv(builder, "conv2", x, 64, 3)}});
  x = builder.op("pool2", "pool2d", {{"x", x}}, pooling("average"));
  x = builder.op("fc", "fc", {{"x", x}, {"w", builder.parameter("fc.w", {10, 64 * 4 * 4}, {})}});
  const ValueId loss = builder.add(
      {.type = "softmax_with_cross_entropy", .inputs = {{"logits", x}, {"label", label}}, .name = "ce"})[1];
  append_backward(builder, builder.op("loss", "mean", {{"x", loss}}));
  return program;
}

std::string reorders(const Program& program) {
  std::string list;
  for (const Op& op : program.ops)
    if (op.type == "reorder")
      list += program.value(op.inputs[0]).name + " (" + program.value(op.inputs[0]).layout.name + ") -> " +
              program.value(op.outputs[0]).layout.name + "\n";
  return list;
}

TEST_CASE("a net of convolutions keeps blocked layouts from op to op") {
  if (!blocks_of_16()) return;
  const auto device = make_cpu_device({.refuse_reference = true});
  for (const std::int64_t channels : {1, 3}) {
    const ProgramRun run(small_net(channels), all_ops(), *device);
    INFO(run.program().ops.size() << " ops, " << channels << " channels");
    for (const char* name : {"conv1", "relu1", "pool1", "conv2", "relu2", "pool2"})
      CHECK(run.program().value(run.program().find(name)).layout.name == "nChw16c");
    CHECK(reorders(run.program()) == "conv2.w (OIhw16i16o) -> OIhw16o16i\n");  // its data gradient wants that
  }
}

TEST_CASE("no convolution or fc of a net runs on a reference implementation") {
  const auto device = make_cpu_device({.refuse_reference = true});
  for (const std::int64_t channels : {1, 2, 3, 4}) {
    const ProgramRun run(small_net(channels), all_ops(), *device);
    for (std::size_t op = 0; op < run.program().ops.size(); ++op) {
      INFO(run.program().ops[op].type << " of " << channels << " channels: " << run.kernel(op).describe());
      CHECK(!run.kernel(op).describe().starts_with("ref"));
    }
  }
}

}  // namespace
}  // namespace fleetrun::runtime
