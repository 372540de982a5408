// The plug-in of another version of fleetrun: it has a higher ABI number, and what follows is not to be believed.
#include "runtime/kernels/plugin.h"

extern "C" const fleetrun::runtime::Plugin* fleetrun_plugin() {
  static const fleetrun::runtime::Plugin plugin = {.abi = fleetrun::runtime::kPluginAbi + 1};
  return &plugin;
}
