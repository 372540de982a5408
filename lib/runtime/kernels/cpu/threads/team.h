// The OpenMP team of a thread: as large as it was asked for, whatever the environment says of OpenMP. oneDNN makes primitives
// for a number of threads and waits for ever when a parallel region has fewer.
#pragma once

namespace fleetrun::runtime::cpu {

// Of the calling thread, from here on. OMP_DYNAMIC would let libgomp choose by the load of the machine, and
// OMP_MAX_ACTIVE_LEVELS=0 would allow one thread only.
void set_team(int threads);

// How many of `wanted` threads the calling thread's parallel regions get: OMP_THREAD_LIMIT cannot be lifted.
// Throws Error(config) when their stacks are too small for oneDNN (OMP_STACKSIZE, ulimit -s).
int largest_team(int wanted);

}  // namespace fleetrun::runtime::cpu
