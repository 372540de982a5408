// The ranks of `fleetrun bench`.
#pragma once
#include <string>
#include <vector>

namespace fleetrun {

// all_reduce DTYPE ROUNDS BYTES...: rank 0 leaves the result in its log folder, bench.json.
void run_bench(const std::vector<std::string>& arguments);

}  // namespace fleetrun
