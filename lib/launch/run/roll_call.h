// Calls the roll: says what each rank is doing, and has the stacks written beside the logs.
#pragma once
#include <string>
#include <vector>

#include "base/system/environment.h"
#include "launch/console/console.h"
#include "launch/logs/log_folder.h"
#include "launch/report/collective_records.h"
#include "launch/report/stack_dump.h"
#include "launch/supervise/event_queue.h"
#include "launch/supervise/process_group.h"
#include "launch/supervise/run_state.h"

namespace fleetrun::launch {

class RollCall {
 public:
  struct Sources {  // all outlive it
    RunState state;
    const Attempt& attempt;  // the present one
    const LogFolder& logs;
    Console& console;
  };

  RollCall(EventLoop& loop, EventQueue& events, const Environment& environment, const Sources& sources);

  void call();    // RollCalled follows when the stacks are written
  void forget();  // a new attempt has begun

  // Of the last call, if there was one.
  const std::vector<std::string>& lines() const { return lines_; }
  const CollectiveRecords& collectives() const { return collectives_; }

 private:
  EventQueue& events_;
  Sources sources_;
  StackDump stacks_;
  std::vector<std::string> lines_;
  CollectiveRecords collectives_;
};

}  // namespace fleetrun::launch
