// Puts what a device does by itself in a run into a timeline: the kernels of its ops, copies and fills.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "base/run/timeline.h"
#include "runtime/kernels/activity_watch.h"

namespace fleetrun::runtime {

class DeviceActivities {
 public:
  static constexpr std::size_t kOfAnOp = 4;  // spans per op for which a timeline should have room

  // `timeline` outlives it.
  DeviceActivities(std::unique_ptr<ActivityWatch> watch, Timeline& timeline)
      : watch_(std::move(watch)), timeline_(timeline) {}

  // Around a run. The device has done all work of the run at the end.
  void begin() { watch_->begin(); }
  void end();
  void cancel() { watch_->end(); }  // the run has failed

 private:
  std::unique_ptr<ActivityWatch> watch_;
  Timeline& timeline_;
  std::map<std::string, Timeline::Label> labels_;  // by name
};

}  // namespace fleetrun::runtime
