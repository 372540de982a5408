// The real plug-in, loaded as the worker loads it. Without a GPU: what it is, and what it says then.
#include <doctest/doctest.h>

#include <dlfcn.h>

#include <set>
#include <string>

#include "base/error/error.h"
#include "runtime/graph/op_def.h"
#include "runtime/kernels/load_plugin.h"

namespace fleetrun::runtime::plugin_test {
namespace {

// Made by passes, which leave a program alone whose device lacks them, or for strategy.amp, which such a device refuses.
const std::set<std::string> kOnCpuOnly = {
#define EVERYWHERE(op)
#define ON_CPU(op) #op,
#define COLLECTIVE(op)
#include "runtime/ops/ops.def"
};

TEST_CASE("the CUDA plug-in loads, and has a kernel for every op but some that passes make") {
  const KernelTable kernels = load_plugin(cuda_plugin_path()).kernels();
  for (const auto& entry : all_ops()) {
    const std::string& name = entry.first;
    INFO("op " << name);
    CHECK(kernels.count(name) + kOnCpuOnly.count(name) == 1);
  }
  CHECK(kernels.size() + kOnCpuOnly.size() == all_ops().size());
}

TEST_CASE("kernels of the CUDA plug-in refuse another device") {
  const KernelTable kernels = load_plugin(cuda_plugin_path()).kernels();
  Program program;
  const ValueId y = program.add_value({.name = "y", .shape = {4}});
  program.ops.push_back(
      {.type = "fill", .outputs = {y}, .attributes = {{"value", 1.0}, {"shape", Shape{4}}}});
  const auto cpu = make_cpu_device();
  const OpView fill(find_op(all_ops(), "fill"), program, program.op(0));
  CHECK_THROWS_WITH_AS(kernels.at("fill").make(fill, *cpu), "a CUDA kernel was asked for device CPU", Error);
}

TEST_CASE("a GPU that is not there is named, with a way out") {
  try {
    load_plugin(cuda_plugin_path()).make_device({.index = 1000});
    FAIL("there is a device 1000");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::config);
    CHECK(error.message().starts_with("cuda:1000"));
  }
}

}  // namespace
}  // namespace fleetrun::runtime::plugin_test
