// The ranks of `fleetrun bench`.
#pragma once
#include <string>
#include <vector>

namespace fleetrun {

// all_reduce DTYPE ROUNDS WAY BYTES...: by the ranks' communicator (WAY is "flat") or in groups ("leader:2",
// "scatter:2"); rank 0 leaves the result in its log folder, bench.json.
void run_bench(const std::vector<std::string>& arguments);

}  // namespace fleetrun
