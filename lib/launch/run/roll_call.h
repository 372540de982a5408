// Calls the roll: prints what each rank is doing, and lets debuggers write the stacks to files beside the logs. Then compares the stacks
// of Python ranks.
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
    const Attempt& attempt;  // the present attempt
    const LogFolder& logs;
    Console& console;
  };

  RollCall(EventLoop& loop, EventQueue& events, const Environment& environment, const Sources& sources);

  void call();    // pushes RollCalled when the stacks are written
  void forget();  // call it when a new attempt has begun

  // The results of the last call; empty if there was none.
  const std::vector<std::string>& lines() const { return lines_; }
  const CollectiveRecords& collectives() const { return collectives_; }

 private:
  struct WrittenStacks {
    int rank = 0;   // in the whole run
    UniqueFd file;  // to read
  };

  void compare_stacks();  // when they are written
  void say(const std::string& line);

  EventQueue& events_;
  Sources sources_;
  StackDump stacks_;
  std::vector<std::string> lines_;
  CollectiveRecords collectives_;
  std::vector<WrittenStacks> written_;  // by the last call
  bool knows_odd_rank_ = false;         // without the stacks
};

}  // namespace fleetrun::launch
