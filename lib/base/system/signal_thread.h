// A thread that takes the signals of a process that computes.
#pragma once

namespace fleetrun {

// From here on, handlers of SIGTERM, SIGINT and SIGUSR1 run on a thread of their own: the calling thread, and those that it starts, block
// these signals. oneDNN 2.6's matrix products for AVX2 keep numbers below the stack pointer, beyond the 128 bytes that the x86-64 ABI
// protects there. The frame of a handler on such a thread would overwrite them, and the product, or memory elsewhere, would be wrong.
// Call it before the threads that compute are started.
void take_signals_on_own_thread();

}  // namespace fleetrun
