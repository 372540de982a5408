#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>

#include "base/error.h"
#include "runtime/kernels/cpu/descriptors.h"
#include "runtime/tensor/philox.h"
#include "support/run_program.h"
#include "support/small_net.h"

namespace fleetrun::runtime {
namespace {

using test::ProgramRun;
using test::small_net;

bool blocks_of_16() {
  return __builtin_cpu_supports("avx512bw") && std::getenv("DNNL_MAX_CPU_ISA") == nullptr;
}

std::string name_of(const Layout& layout) { return layout.plain() ? "plain" : layout.name; }

std::string reorders(const Program& program) {
  std::string list;
  for (const Op& op : program.ops) {
    if (op.type != "reorder") continue;
    const Value& from = program.value(op.inputs[0]);
    list += from.name + " (" + name_of(from.layout) + ") -> " + name_of(program.value(op.outputs[0]).layout) +
            "\n";
  }
  return list;
}

TEST_CASE("a net of convolutions keeps blocked layouts from op to op") {
  if (!blocks_of_16()) return;
  const auto device = make_cpu_device({.refuse_reference = true});
  for (const std::int64_t channels : {1, 3}) {
    const ProgramRun run(small_net(channels), all_ops(), *device);
    INFO(run.program().ops.size() << " ops, " << channels << " channels");
    for (const char* name : {"conv1", "bn1.y", "relu1", "pool1", "conv2", "relu2", "pool2"})
      CHECK(run.program().value(run.program().find(name)).layout.name == "nChw16c");
    CHECK(reorders(run.program()) ==
          "pool2 (nChw16c) -> plain\n"              // dropout and fc see matrices
          "pool2@GRAD (plain) -> nChw16c\n"         // and back
          "conv2.w (OIhw16i16o) -> OIhw16o16i\n");  // its data gradient wants the weight transposed
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

// [1, 3, 8, 8] with the channels side by side: what oneDNN has nothing fast for.
Layout channels_last() {
  cpu::Descriptor descriptor = cpu::row_major({1, 3, 8, 8}, DType::f32);
  const std::array<std::int64_t, 4> strides = {3 * 64, 1, 3 * 8, 3};
  std::copy(strides.begin(), strides.end(), descriptor.format_desc.blocking.strides);
  return cpu::layout_of(descriptor, cpu::kActivation);
}

TEST_CASE("a reference implementation is refused by the name of its op, but only when asked to") {
  if (!blocks_of_16()) return;
  Program program;
  Builder builder(program, all_ops());
  const ValueId x = builder.feed("x", {1, 3, 8, 8});
  const ValueId w = builder.parameter("w", {4, 3, 3, 3}, {});
  builder.op("y", "conv2d", {{"x", x}, {"w", w}}, test::convolution(1, 0));
  program.value(x).layout = channels_last();
  CHECK(program.value(x).layout.name == "nhwc");
  const OpView op(find_op(all_ops(), "conv2d"), program, program.op(0));
  const auto patient = make_cpu_device();
  if (std::getenv("FLEETRUN_REFUSE_REF") == nullptr)
    CHECK(patient->kernels().at("conv2d").make(op, *patient)->describe().starts_with("ref"));
  const auto strict = make_cpu_device({.refuse_reference = true});
  CHECK_THROWS_WITH_AS(strict->kernels().at("conv2d").make(op, *strict),
                       "op conv2d would run on oneDNN's reference implementation ref:any", Error);
}

// x [2, 32, 10, 10] convolved by 3x3 with its gradients, by an algorithm: y, dx, dw, and the implementations' names.
struct Convolved {
  std::vector<test::Floats> values;
  std::vector<std::string> implementations;
};

Convolved convolved_by(const std::string& algorithm, Device& device) {
  Program program;
  Builder builder(program, all_ops());
  const Shape image = {2, 32, 10, 10}, weight = {32, 32, 3, 3};
  const ValueId x = builder.feed("x", image), w = builder.feed("w", weight), dy = builder.feed("dy", image);
  Attributes attributes = test::convolution(1, 1);
  attributes[kAlgorithm] = algorithm;
  attributes["input_shape"] = image;
  attributes["weight_shape"] = weight;
  const std::vector<ValueId> made = {
      builder.op("y", "conv2d", {{"x", x}, {"w", w}}, attributes),
      builder.op("dx", "conv2d_grad_input", {{"dy", dy}, {"w", w}}, attributes),
      builder.add({.type = "conv2d_grad_weights",
                   .inputs = {{"x", x}, {"dy", dy}},
                   .attributes = attributes,
                   .name = "dw",
                   .outputs = {"dw"}})[0]};
  ProgramRun run(program, all_ops(), device);
  for (const ValueId id : {x, w, dy}) {
    test::Floats values(static_cast<std::size_t>(count_of(program.value(id).shape)));
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = unit_float(philox(static_cast<std::uint64_t>(id), 0, i)[0]) - 0.5F;
    run.set(id, values);
  }
  run.run();
  Convolved convolved;
  for (const ValueId id : made) convolved.values.push_back(run.get(id));
  for (std::size_t op = 0; op < run.program().ops.size(); ++op)
    if (run.program().ops[op].type != "reorder")
      convolved.implementations.push_back(run.kernel(op).describe());
  return convolved;
}

TEST_CASE("Winograd's results are close to those of the direct algorithm, forward and backward") {
  if (!blocks_of_16()) return;
  const auto device = make_cpu_device({.refuse_reference = true});
  const Convolved direct = convolved_by("direct", *device), winograd = convolved_by("winograd", *device);
  REQUIRE(winograd.implementations.size() == 3);
  for (const std::string& name : winograd.implementations) CHECK(name.find("wino") != std::string::npos);
  for (const std::string& name : direct.implementations) CHECK(name.find("wino") == std::string::npos);
  for (std::size_t i = 0; i < direct.values.size(); ++i) {
    double difference = 0, norm = 0;
    for (std::size_t j = 0; j < direct.values[i].size(); ++j) {
      difference += std::pow(direct.values[i][j] - winograd.values[i][j], 2);
      norm += std::pow(direct.values[i][j], 2);
    }
    CHECK(std::sqrt(difference / norm) < 1e-5);
    CHECK(direct.values[i] != winograd.values[i]);
  }
}

TEST_CASE("Winograd is offered for 3x3 of stride 1, not for others; an unknown algorithm is refused") {
  if (!blocks_of_16()) return;
  const auto device = make_cpu_device();
  const auto offered = [&](std::int64_t kernel, std::int64_t stride) {
    Program program;
    Builder builder(program, all_ops());
    const ValueId x = builder.feed("x", {2, 32, 10, 10});
    const ValueId w = builder.parameter("w", {32, 32, kernel, kernel}, {});
    builder.op("y", "conv2d", {{"x", x}, {"w", w}}, test::convolution(stride, kernel / 2));
    const OpView op(find_op(all_ops(), "conv2d"), program, program.op(0));
    return device->kernels().at("conv2d").algorithms(op, *device);
  };
  CHECK(offered(3, 1) == std::vector<std::string>{"direct", "winograd"});
  CHECK(offered(3, 2) == std::vector<std::string>{"direct"});
  CHECK(offered(1, 1) == std::vector<std::string>{"direct"});
  CHECK_THROWS_WITH_AS(convolved_by("fft", *device),
                       "conv2d (y): algorithm is fft, wanted direct or winograd", Error);
}

}  // namespace
}  // namespace fleetrun::runtime
