// The signals that end a run, read from a descriptor instead of interrupting us.
#pragma once
#include <csignal>
#include <vector>

#include "base/unique_fd.h"

namespace fleetrun::launch {

// INT, TERM, QUIT, and HUP unless we were started with HUP ignored (nohup).
std::vector<int> stop_signals();

void block_signals(const std::vector<int>& signals);
UniqueFd open_signal_fd(const std::vector<int>& signals);  // blocked ones; does not block. Throws Error(os).
std::vector<int> read_signals(int signal_fd);              // those that came, in order

}  // namespace fleetrun::launch
