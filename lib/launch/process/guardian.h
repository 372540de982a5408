// Two processes for one launcher. The front one is what the user's shell sees: it passes signals on and ends
// with the other's code. The middle one, in a process group of its own, is the parent of the workers. If the
// front one dies, the middle one reads the end of their pipe and ends its tree; if the middle one dies, the
// workers get the parent-death signal and the front one ends what is left.
#pragma once
#include <functional>

#include "launch/process/exit_status.h"

namespace fleetrun::launch {

// `middle` runs in the middle process with a descriptor that reaches its end when the front process is gone,
// and gives the exit code. Errors that it throws are printed there. Returns in the front process only, where
// `lost` is called when a signal ended the middle process and its workers are gone.
int run_guarded(const std::function<int(int front_fd)>& middle,
                const std::function<void(const ExitStatus&)>& lost);

}  // namespace fleetrun::launch
