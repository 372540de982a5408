// The device that a test runs on: the CPU, or the one that FLEETRUN_TEST_DEVICE names ("cuda:0"), from the plug-in beside
// our libraries or the one that FLEETRUN_TEST_PLUGIN names. The same cases hold for all.
#pragma once
#include <memory>
#include <string>

#include "base/system/environment.h"
#include "runtime/kernels/load_plugin.h"

namespace fleetrun::runtime::test {

inline std::unique_ptr<Device> named_device(const job::StrategySpec& strategy,
                                            const CpuOptions& on_cpu = {}) {
  const Environment environment = Environment::of_this_process();
  const std::string name = environment.get_or("FLEETRUN_TEST_DEVICE", "cpu");
  if (name == "cpu") return make_cpu_device(on_cpu);
  const std::string plugin = environment.get_or("FLEETRUN_TEST_PLUGIN", cuda_plugin_path());
  return load_plugin(plugin).make_device(plugin_options(name, strategy, environment));
}

inline std::unique_ptr<Device> make_test_device() { return named_device({}, {.refuse_reference = true}); }

}  // namespace fleetrun::runtime::test
