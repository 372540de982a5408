// What signals ask of a training that keeps checkpoints: SIGUSR1 for one now, SIGTERM for a last one.
#pragma once

namespace fleetrun::runtime {

struct Requests {
  bool save = false;
  bool stop = false;
};

// For the whole process, from here on. A second SIGTERM ends it at once.
void listen_for_requests();

// What came since the last call; a wish to stop stays.
Requests take_requests();

}  // namespace fleetrun::runtime
