#include "launch/supervise/run_state.h"

#include <algorithm>

namespace fleetrun::launch {

std::optional<std::int64_t> highest_step(const std::vector<ProgressPagePtr>& pages) {
  std::optional<std::int64_t> highest;
  for (const ProgressPagePtr& page : pages)
    highest = std::max(highest.value_or(0), static_cast<std::int64_t>(page->step.load()));
  return highest;
}

}  // namespace fleetrun::launch
