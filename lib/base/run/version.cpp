#include "base/run/version.h"

namespace fleetrun {

const char* own_version() { return FLEETRUN_VERSION; }

}  // namespace fleetrun
