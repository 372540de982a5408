#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>

#include "base/error/error.h"
#include "runtime/kernels/cpu/loops/instruction_set.h"
#include "runtime/kernels/cpu/onednn/descriptors.h"
#include "runtime/tensor/philox.h"
#include "support/leave_out.h"
#include "support/run_program.h"
#include "support/small_net.h"

namespace fleetrun::runtime::conv2d_test {
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
  if (!blocks_of_16()) LEAVE_OUT("oneDNN has no blocks of 16 channels here: needs AVX-512");
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
  if (!blocks_of_16()) LEAVE_OUT("oneDNN has no blocks of 16 channels here: needs AVX-512");
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

// A convolution of two images, and the type that it computes in.
struct Problem {
  std::int64_t channels = 32, filters = 32, rows = 10, kernel = 3, stride = 1, padding = 1;
  const char* dtype = "f32";

  Shape image() const { return {2, channels, rows, rows + 2}; }
  Shape weight() const { return {filters, channels, kernel, kernel}; }
  Shape result() const { return {2, filters, places(rows), places(rows + 2)}; }
  std::int64_t places(std::int64_t size) const { return (size + 2 * padding - kernel) / stride + 1; }
};

// By an algorithm: y, dw, dx, and the implementations' names.
struct Convolved {
  std::vector<test::Floats> values;
  std::vector<std::string> implementations;
};

Convolved convolved_by(const std::string& algorithm, Device& device, const Problem& problem = {},
                       const std::string& of_grad_input = "") {
  Program program;
  Builder builder(program, all_ops());
  const ValueId x = builder.feed("x", problem.image()), w = builder.feed("w", problem.weight()),
                dy = builder.feed("dy", problem.result());
  const auto as = [&](const char* dtype, ValueId id) {
    return builder.op(program.value(id).name + "_" + dtype, "cast", {{"x", id}},
                      {{"dtype", std::string(dtype)}});
  };
  Attributes attributes = test::convolution(problem.stride, problem.padding);
  attributes[kAlgorithm] = algorithm;
  attributes["input_shape"] = problem.image();
  attributes["weight_shape"] = problem.weight();
  const ValueId x_in = as(problem.dtype, x), w_in = as(problem.dtype, w), dy_in = as(problem.dtype, dy);
  std::vector<ValueId> made = {builder.op("y", "conv2d", {{"x", x_in}, {"w", w_in}}, attributes),
                               builder.add({.type = "conv2d_grad_weights",
                                            .inputs = {{"x", x_in}, {"dy", dy_in}},
                                            .attributes = attributes,
                                            .name = "dw",
                                            .outputs = {"dw"}})[0]};
  if (!of_grad_input.empty()) attributes[kAlgorithm] = of_grad_input;
  made.push_back(builder.op("dx", "conv2d_grad_input", {{"dy", dy_in}, {"w", w_in}}, attributes));
  for (ValueId& id : made) id = as("f32", id);
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
    if (run.program().ops[op].type.starts_with("conv2d"))
      convolved.implementations.push_back(run.kernel(op).describe());
  return convolved;
}

// |a - b| / |a|, as vectors.
double distance(const test::Floats& a, const test::Floats& b) {
  REQUIRE(a.size() == b.size());
  double difference = 0, norm = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference += std::pow(a[i] - b[i], 2);
    norm += std::pow(a[i], 2);
  }
  return std::sqrt(difference / norm);
}

TEST_CASE("Winograd's results are close to those of the direct algorithm, forward and backward") {
  if (!blocks_of_16()) LEAVE_OUT("oneDNN has no blocks of 16 channels here: needs AVX-512");
  const auto device = make_cpu_device({.refuse_reference = true});
  const Convolved direct = convolved_by("direct", *device), winograd = convolved_by("winograd", *device);
  REQUIRE(winograd.implementations.size() == 3);
  for (const std::string& name : winograd.implementations) CHECK(name.find("wino") != std::string::npos);
  for (const std::string& name : direct.implementations) CHECK(name.find("wino") == std::string::npos);
  for (std::size_t i = 0; i < direct.values.size(); ++i) {
    CHECK(distance(direct.values[i], winograd.values[i]) < 1e-5);
    CHECK(direct.values[i] != winograd.values[i]);
  }
}

TEST_CASE(
    "as a product of matrices a convolution and its gradients are what they are by the direct algorithm") {
  if (!blocks_of_16()) LEAVE_OUT("oneDNN has no blocks of 16 channels here: needs AVX-512");
  const auto device = make_cpu_device();
  const Problem pixels = {.channels = 48, .filters = 80, .kernel = 1, .padding = 0};
  const Problem strided = {.channels = 48, .filters = 32, .kernel = 1, .stride = 2, .padding = 0};
  const Problem rows_left = {.rows = 9, .kernel = 1, .stride = 4, .padding = 0};
  for (const Problem& apart : {pixels, strided, rows_left}) {
    INFO("1x1, stride " << apart.stride << ", " << apart.rows << " rows");
    const Convolved direct = convolved_by("direct", *device, apart),
                    gemm = convolved_by("gemm", *device, apart);
    for (const std::string& name : gemm.implementations) {
      CHECK(name.find("brgemm") != std::string::npos);
      CHECK(name.ends_with(" of patches") == (apart.stride > 1));
    }
    for (std::size_t i = 0; i < 3; ++i) CHECK(distance(direct.values[i], gemm.values[i]) < 1e-6);
  }
  const Problem padded = {.channels = 64, .filters = 48};
  const Problem strided_3 = {.channels = 128, .rows = 9, .stride = 2};
  const Problem inside = {.channels = 64, .rows = 12, .kernel = 5, .padding = 0};
  for (const Problem& many_taps : {padded, strided_3, inside}) {
    INFO(many_taps.kernel << "x" << many_taps.kernel << ", stride " << many_taps.stride);
    const Convolved direct = convolved_by("direct", *device, many_taps),
                    gemm = convolved_by("gemm", *device, many_taps, "direct");
    CHECK(gemm.implementations[1].ends_with(" of patches"));
    for (std::size_t i = 0; i < 2; ++i) CHECK(distance(direct.values[i], gemm.values[i]) < 1e-6);
  }
}

TEST_CASE(
    "a product of matrices is offered where convolutions want channels last, as in bf16 on matrix units") {
  const auto device = make_cpu_device();
  const auto offered = [&](const char* op, const Problem& problem, DType dtype) {
    Program program;
    Builder builder(program, all_ops());
    const ValueId x = builder.feed("x", problem.image(), dtype),
                  w = builder.feed("w", problem.weight(), dtype),
                  dy = builder.feed("dy", problem.result(), dtype);
    Attributes attributes = test::convolution(problem.stride, problem.padding);
    attributes["input_shape"] = problem.image();
    attributes["weight_shape"] = problem.weight();
    builder.op("dx", "conv2d_grad_input", {{"dy", dy}, {"w", w}}, attributes);
    builder.add({.type = "conv2d_grad_weights",
                 .inputs = {{"x", x}, {"dy", dy}},
                 .attributes = attributes,
                 .name = "dw",
                 .outputs = {"dw"}});
    const std::size_t index = program.op(0).type == op ? 0 : 1;
    const std::vector<std::string> names = device->kernels().at(op).algorithms(
        OpView(find_op(all_ops(), op), program, program.op(index)), *device);
    return std::find(names.begin(), names.end(), "gemm") != names.end();
  };
  const Problem one_tap = {.channels = 64, .kernel = 1, .padding = 0}, taps = {.channels = 64},
                few_channels = {.channels = 32}, large = {.channels = 256, .rows = 120};
  CHECK(!offered("conv2d_grad_weights", one_tap, DType::f32));
  const bool matrix_units =
      (instruction_sets() & dnnl_cpu_isa_avx512_core_amx) == dnnl_cpu_isa_avx512_core_amx;
  if (!matrix_units || std::getenv("DNNL_MAX_CPU_ISA") != nullptr)
    LEAVE_OUT("this processor has no matrix units for bf16, or DNNL_MAX_CPU_ISA forbids them");
  for (const char* op : {"conv2d_grad_weights", "conv2d_grad_input"})
    CHECK(offered(op, one_tap, DType::bf16));
  CHECK(offered("conv2d_grad_weights", taps, DType::bf16));
  CHECK(!offered("conv2d_grad_input", taps, DType::bf16));
  CHECK(
      !offered("conv2d_grad_weights", few_channels, DType::bf16));  // blocks of channels would hold two taps
  CHECK(!offered("conv2d_grad_weights", large, DType::bf16));       // patches of 130 MB
  for (const Problem& problem : {one_tap, taps}) {
    Problem narrow = problem;
    narrow.dtype = "bf16";
    const Convolved direct = convolved_by("direct", *device, narrow),
                    gemm = convolved_by("gemm", *device, narrow, problem.kernel == 1 ? "gemm" : "direct");
    for (std::size_t i = 0; i < 3; ++i) CHECK(distance(direct.values[i], gemm.values[i]) < 1e-2);
  }
}

TEST_CASE("Winograd is offered for 3x3 of stride 1, not for others; an unknown algorithm is refused") {
  if (!blocks_of_16()) LEAVE_OUT("oneDNN has no blocks of 16 channels here: needs AVX-512");
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
                       "conv2d (y): algorithm is fft, wanted direct, winograd or gemm", Error);
}

}  // namespace
}  // namespace fleetrun::runtime::conv2d_test
