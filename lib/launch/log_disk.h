// Tells when the disk of the logs is full. Workers write their logs themselves, so that we can only look now and then.
#pragma once
#include <functional>
#include <string>
#include <string_view>

#include "launch/event_loop.h"

namespace fleetrun::launch {

class LogDisk {
 public:
  LogDisk(EventLoop& loop, std::string folder, std::function<void(std::string_view line)> say);

  void look();
  bool was_full() const { return was_full_; }  // some time since the beginning

 private:
  void look_later();

  EventLoop& loop_;
  std::string folder_;
  std::function<void(std::string_view line)> say_;
  bool was_full_ = false;
  TimePoint told_;
};

}  // namespace fleetrun::launch
