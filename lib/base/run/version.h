// The version of this fleetrun, "0.1.0". Nodes and ranks compare it with that of the others.
#pragma once

namespace fleetrun {

const char* own_version();

}  // namespace fleetrun
