// The signals that we handle, read from a descriptor instead of interrupting us.
#pragma once
#include <sys/types.h>

#include <csignal>
#include <string_view>
#include <vector>

#include "base/unique_fd.h"

namespace fleetrun::launch {

// INT, TERM, HUP end the run, HUP only if we were not started with it ignored (nohup); QUIT calls the roll, USR1 and
// USR2 are passed on, TSTP and CONT stop and continue, CHLD tells of orphans.
std::vector<int> handled_signals();
bool ends_a_run(int signal);

void block_signals(const std::vector<int>& signals);
UniqueFd open_signal_fd(const std::vector<int>& signals);  // blocked ones; does not block. Throws Error(os).
std::vector<int> read_signals(int signal_fd);              // those that came, in order

// The process neither handles, blocks nor ignores the signal. Nothing is known of one that is gone: false.
bool would_end(pid_t pid, int signal);
bool would_end(std::string_view proc_status, int signal);  // by the text of /proc/PID/status

}  // namespace fleetrun::launch
