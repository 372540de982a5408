#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "base/error.h"
#include "runtime/kernels/cpu/descriptors.h"
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

}  // namespace
}  // namespace fleetrun::runtime
