// A cgroup of the version 2 hierarchy for the workers, where one can be made: no process leaves it by a new session
// or a double fork, and the kernel ends all of it at once. A small guard process, once it is posted, ends it when
// this process is killed.
#pragma once
#include <sys/types.h>

#include <memory>
#include <string>

#include "base/system/unique_fd.h"

namespace fleetrun::launch {

class RunCgroup {
 public:
  // Below the cgroup of this process; null where that cannot be written or the kernel is older than 5.14.
  // Ends what launchers that were killed together with their guard left there.
  static std::unique_ptr<RunCgroup> make();
  ~RunCgroup();  // takes the folder away, and waits for the end of the guard
  RunCgroup(const RunCgroup&) = delete;
  RunCgroup& operator=(const RunCgroup&) = delete;

  int folder_fd() const { return folder_.get(); }
  void post_guard();
  pid_t guard() const { return guard_pidfd_ ? guard_pid_ : -1; }  // a child of ours; -1: none
  void kill_all() const;                                          // and the guard, which nobody needs then

 private:
  explicit RunCgroup(std::string path);
  bool usable() const { return static_cast<bool>(kill_); }

  std::string path_;
  UniqueFd folder_;  // locked while we live
  UniqueFd kill_;
  UniqueFd alive_;  // at its end the guard acts
  pid_t guard_pid_ = -1;
  UniqueFd guard_pidfd_;
};

}  // namespace fleetrun::launch
