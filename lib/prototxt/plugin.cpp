// The one function that libfleetrun_prototxt.so exports.
#include "job/strategy_files/prototxt_plugin.h"
#include "prototxt/read_strategy.h"
#include "prototxt/write_strategy.h"

extern "C" __attribute__((visibility("default"))) const fleetrun::job::PrototxtPlugin* fleetrun_prototxt() {
  static const fleetrun::job::PrototxtPlugin plugin = {.read = fleetrun::prototxt::read_strategy,
                                                       .write = fleetrun::prototxt::write_strategy};
  return &plugin;
}
