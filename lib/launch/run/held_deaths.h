// The death of a rank that has lost its peer waits a little, because a stop would end the peer before it has said why: Python prints an
// exception only after every `finally`, such as one that calls destroy_process_group().
#pragma once
#include <chrono>
#include <vector>

#include "launch/logs/log_folder.h"
#include "launch/run/last_words.h"
#include "launch/supervise/event_queue.h"
#include "launch/supervise/process_group.h"
#include "launch/supervise/verdict.h"

namespace fleetrun::launch {

class HeldDeaths {
 public:
  static constexpr auto kTimeForPeer = std::chrono::seconds(2);

  HeldDeaths(EventQueue& events, const Attempt& attempt, const LogFolder& logs);  // all outlive it

  // The events to handle now, in order. Holds the first deaths of an attempt while their logs end with an error about a lost connection and
  // another rank still runs: for kTimeForPeer, until a rank fails for another reason, or until something else ends the run. A failure that
  // another node has told comes before them.
  std::vector<Event> take(const Event& event, const Verdict& verdict);

 private:
  bool is_of_lost_peer(const Event& event) const;
  std::vector<Event> release();

  EventQueue& events_;
  const Attempt& attempt_;
  const LogFolder& logs_;
  std::vector<WorkerExited> held_;
};

}  // namespace fleetrun::launch
