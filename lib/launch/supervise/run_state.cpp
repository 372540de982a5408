#include "launch/supervise/run_state.h"

#include <algorithm>

namespace fleetrun::launch {

bool have_own_checkpoint(const std::vector<ProgressPagePtr>& pages) {
  return std::ranges::any_of(pages,
                             [](const ProgressPagePtr& page) { return page->has_own_checkpoint.load(); });
}

std::optional<std::int64_t> highest_step(const std::vector<ProgressPagePtr>& pages) {
  std::optional<std::int64_t> highest;
  for (const ProgressPagePtr& page : pages)
    highest = std::max(highest.value_or(0), static_cast<std::int64_t>(page->step.load()));
  return highest;
}

}  // namespace fleetrun::launch
