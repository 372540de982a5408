#include "launch/supervise/run_state.h"

#include <algorithm>
#include <variant>

#include "base/error/error.h"

namespace fleetrun::launch {

std::optional<std::int64_t> highest_step(const std::vector<ProgressPagePtr>& pages) {
  std::optional<std::int64_t> highest;
  for (const ProgressPagePtr& page : pages) {
    const bool has_done_one = page->first_step_ns != 0;  // before, the page has the step of the checkpoint
    const auto step = static_cast<std::int64_t>(has_done_one ? page->step.load() : 0);
    highest = std::max(highest.value_or(0), step);
  }
  return highest;
}

bool lacks_only_last_checkpoint(const Event& event, const std::vector<ProgressPagePtr>& pages) {
  const auto* const death = std::get_if<WorkerExited>(&event);
  return death != nullptr && !pages.empty() && pages.at(static_cast<std::size_t>(death->rank))->is_done &&
         death->status.exit_code() == static_cast<int>(ErrorKind::io);
}

}  // namespace fleetrun::launch
