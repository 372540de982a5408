// When this process crashes: who it is and where it was, on stderr, before it ends as it would have.
#pragma once
#include <string>

namespace fleetrun {

// From now on, for SEGV, BUS, FPE, ILL and ABRT. `who` starts the first line: "rank 3".
void install_crash_trace(const std::string& who);

}  // namespace fleetrun
