#include "launch/supervise/signal_watch.h"

#include <csignal>

#include "launch/process/orphans.h"

namespace fleetrun::launch {

SignalWatch::SignalWatch(EventLoop& loop, EventQueue& events, ProcessGroup& workers)
    : loop_(loop), events_(events), workers_(workers) {
  const std::vector<int> signals = handled_signals();
  block_signals(signals);
  signals_ = open_signal_fd(signals);
  loop_.watch_readable(signals_.get(), [this] { take(); });
}

SignalWatch::~SignalWatch() { loop_.forget(signals_.get()); }

bool SignalWatch::take() {
  bool asks_to_end = false;
  for (const ReceivedSignal& signal : read_signals(signals_.get())) {
    if (signal.number == SIGCHLD) {
      workers_.look_for_stop();
      if (signal.of_stop) workers_.tell_who_wants_terminal();
      reap();
    } else if (!repeats_.is_repeat(signal, Clock::now())) {
      events_.push(SignalReceived{signal.number});
      asks_to_end = asks_to_end || ends_a_run(signal.number);
    }
  }
  return asks_to_end;
}

void SignalWatch::reap() const {
  std::vector<pid_t> leaders;
  for (const WorkerRecord& worker : workers_.records()) leaders.push_back(worker.pid);
  reap_orphans(leaders);
}

}  // namespace fleetrun::launch
