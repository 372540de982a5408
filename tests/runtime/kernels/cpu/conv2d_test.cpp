#include <doctest/doctest.h>

#include <cstdlib>

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
    for (const char* name : {"conv1", "relu1", "pool1", "conv2", "relu2", "pool2"})
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

}  // namespace
}  // namespace fleetrun::runtime
