#include "base/system/signal_thread.h"

#include <unistd.h>

#include <csignal>
#include <thread>

namespace fleetrun {

void take_signals_on_own_thread() {
  std::thread([] {
    while (true) ::pause();
  }).detach();
  sigset_t taken;
  ::sigemptyset(&taken);
  for (const int signal : {SIGTERM, SIGINT, SIGUSR1}) ::sigaddset(&taken, signal);
  ::pthread_sigmask(SIG_BLOCK, &taken, nullptr);
}

}  // namespace fleetrun
