// What signals ask of a training that keeps checkpoints: SIGUSR1 for one now, SIGTERM and SIGINT for a last one.
#pragma once
#include <chrono>
#include <cstdint>

namespace fleetrun::runtime {

struct Requests {
  bool save = false;
  bool stop = false;
};

// For the whole process, from here on.
void listen_for_save_requests();
// Likewise. A second signal of the same kind, more than a second after the first, ends the process at once.
void listen_for_stop_requests();

// What came since the last call; a wish to stop stays.
Requests take_requests();

// Ends the process by this signal, whatever was made of that before.
void die_of(int signal);

// Likewise, by the signal that asked for a stop on which all ranks agreed: SIGINT, or SIGTERM if that came, too, or nothing came. If only some ranks got the signal, the others wait here, so that one
// that got it ends first and is named as the cause; its end makes the launcher send SIGTERM to the rest. They wait for `patience` at most.
void end_stopped_rank(std::chrono::nanoseconds patience);

// A signal for all ranks reaches one after the other, and they may end a step in between: who is asked for a save just after
// it joined that of another rank is asked for the same one.
class SaveRequests {
 public:
  // `asked`: this rank, since the last call. Whether that is another save than the last.
  bool is_new(bool asked, std::int64_t now_ns);
  // All ranks save now; `asked`: this one did ask.
  void answered(bool asked, std::int64_t now_ns);

 private:
  bool expected_ = false;  // the signal of the last save is still to come here
  std::int64_t until_ = 0;
};

}  // namespace fleetrun::runtime
