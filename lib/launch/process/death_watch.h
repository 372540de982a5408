// The deaths of processes, in the order in which they happened.
//
// The kernel ends one process at a time (tasklist_lock in exit_notify) and wakes whoever watches its pidfd then. An
// edge-triggered epoll appends each wake-up to its list of ready descriptors, and epoll_wait returns that list from its
// head. So the order is right for all processes that are watched before they can die.
#pragma once
#include <cstddef>
#include <vector>

#include "base/system/unique_fd.h"

namespace fleetrun::launch {

class DeathWatch {
 public:
  DeathWatch();  // Throws Error(os).

  int fd() const { return epoll_.get(); }  // readable when somebody has died

  // The caller still owns the pidfd, and calls forget() before closing it. Returns 0 or errno.
  int watch(const UniqueFd& pidfd, std::size_t rank);
  void forget(const UniqueFd& pidfd);

  std::vector<std::size_t> take();  // the ranks that died since the last call, the first death first

 private:
  UniqueFd epoll_;
};

}  // namespace fleetrun::launch
