#include "runtime/exec/device_activities.h"

namespace fleetrun::runtime {

void DeviceActivities::end() {
  for (const Activity& activity : watch_->end()) {
    const auto [label, is_new] = labels_.try_emplace(activity.name);
    if (is_new)
      label->second = timeline_.add(
          {.lane = Lane::device_kernels, .name = activity.name, .category = activity.category, .value = ""});
    timeline_.note(label->second, activity.start_ns, activity.end_ns);
  }
}

}  // namespace fleetrun::runtime
