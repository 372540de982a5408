// Calls the roll: says what each rank is doing, and has the stacks written beside the logs.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "base/environment.h"
#include "base/progress_page.h"
#include "launch/console/console.h"
#include "launch/logs/log_folder.h"
#include "launch/report/collective_records.h"
#include "launch/report/stack_dump.h"
#include "launch/supervise/process_group.h"

namespace fleetrun::launch {

class RollCaller {
 public:
  struct Sources {  // all outlive it
    const ProcessGroup& group;
    const LogFolder& logs;
    const std::vector<ProgressPagePtr>& pages;
    Console& console;
  };

  RollCaller(EventLoop& loop, const Environment& environment, Sources sources);

  void call(std::function<void()> done);
  void forget();  // a new attempt has begun

  // Of the last call, if there was one.
  const std::vector<std::string>& lines() const { return lines_; }
  const CollectiveRecords& collectives() const { return collectives_; }

 private:
  Sources sources_;
  StackDump stacks_;
  std::vector<std::string> lines_;
  CollectiveRecords collectives_;
};

}  // namespace fleetrun::launch
