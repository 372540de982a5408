// A plug-in that makes the CPU's device.
#include "runtime/kernels/plugin.h"

extern "C" const fleetrun::runtime::Plugin* fleetrun_plugin() {
  static const fleetrun::runtime::Plugin plugin = {
      .make_device = [](const fleetrun::runtime::PluginOptions&) {
        return fleetrun::runtime::make_cpu_device();
      }};
  return &plugin;
}
