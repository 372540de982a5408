// Processes that came to us because their parent ended: daemons and helpers of workers. As subreaper we are
// the parent of all of them, so none can hide; as our unreaped children their numbers cannot be reused.
#pragma once
#include <sys/types.h>

#include <vector>

#include "launch/loop/clock.h"

namespace fleetrun::launch {

// From now on orphans of our descendants become our children. Throws Error(os).
void become_subreaper();

// The children of this process, zombies included; where /proc does not show them, found by trying every number.
std::vector<pid_t> find_children();

// Reaps ended children that are not in `known`, as far as /proc shows them.
void reap_orphans(const std::vector<pid_t>& known);

struct LeftProcess {
  pid_t pid = 0, parent = 0;
};

// The running processes that were left to this process, as far as /proc shows them: its children that are not in `known`, and their
// descendants, parents first.
std::vector<LeftProcess> list_left(const std::vector<pid_t>& known);

// Waits until there are none, or until then.
void wait_for_left(TimePoint latest, const std::vector<pid_t>& known, const std::vector<pid_t>& deaf = {});

// Sends them SIGTERM, and waits until there are none, at most for `patience`. Python's trackers of shared memory need a moment after the
// end of their program to remove it. Those in `deaf` have had their time, and count no more. Returns those that it has asked.
std::vector<pid_t> ask_left_to_end(Clock::duration patience, const std::vector<pid_t>& known,
                                   const std::vector<pid_t>& deaf);

// Kills and reaps children, and the children that these leave to us, until there is none.
// Returns those that were killed and are still there after `patience`, in which the time of searches does not count.
// Those in `spared` are not ours.
std::vector<pid_t> end_all_children(Clock::duration patience, const std::vector<pid_t>& spared = {});

}  // namespace fleetrun::launch
