// Loads libfleetrun_prototxt.so, which reads and writes strategy files.
#pragma once
#include "job/strategy_files/prototxt_plugin.h"

namespace fleetrun::job {

// Loads it on the first call. Throws Error(config) if this installation lacks it, or if it is another version's.
const PrototxtPlugin& prototxt_plugin();

}  // namespace fleetrun::job
