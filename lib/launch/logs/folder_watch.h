// Tells when a file in a folder was written to; then not for a pause, in which writing costs the writers nothing.
// By dnotify: closing an inotify descriptor waits 8 to 16 ms for the kernel, most of what a short run takes.
#pragma once
#include <chrono>
#include <functional>
#include <string>

#include "base/system/unique_fd.h"
#include "launch/loop/event_loop.h"
#include "launch/loop/timer.h"

namespace fleetrun::launch {

class FolderWatch {
 public:
  static constexpr auto kUnseen = std::chrono::milliseconds(20);  // a pause for who shows what is written

  // Blocks SIGIO in this thread; one watch in a process. The callback comes with the first change and, for what was
  // written meanwhile, after the pause. Where the kernel has no dnotify it comes every 100 ms.
  FolderWatch(EventLoop& loop, const std::string& folder, Clock::duration pause,
              std::function<void()> on_change);
  ~FolderWatch();
  void follow(const std::string& folder);  // from now on, instead of the one before
  FolderWatch(const FolderWatch&) = delete;
  FolderWatch& operator=(const FolderWatch&) = delete;

 private:
  bool watch();
  void look_again_after(Clock::duration pause);

  EventLoop& loop_;
  Clock::duration pause_;
  std::function<void()> on_change_;
  UniqueFd folder_, signals_;
  Timer look_;
};

}  // namespace fleetrun::launch
