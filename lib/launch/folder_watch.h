// Tells when a file in a folder was written to.
// By dnotify: closing an inotify descriptor waits 8 to 16 ms for the kernel, most of what a short run takes.
#pragma once
#include <functional>
#include <string>

#include "base/unique_fd.h"
#include "launch/event_loop.h"

namespace fleetrun::launch {

class FolderWatch {
 public:
  // Blocks SIGIO in this thread; one watch in a process. Where the kernel has no dnotify the callback comes every
  // 100 ms.
  FolderWatch(EventLoop& loop, const std::string& folder, std::function<void()> on_change);
  ~FolderWatch();
  FolderWatch(const FolderWatch&) = delete;
  FolderWatch& operator=(const FolderWatch&) = delete;

 private:
  void look_again_later();

  EventLoop& loop_;
  std::function<void()> on_change_;
  UniqueFd folder_, signals_;
};

}  // namespace fleetrun::launch
