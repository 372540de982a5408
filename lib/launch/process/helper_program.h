// A program that helps the launcher beside the run, such as a debugger. It has a time limit and a limit of output, and ends with its
// descendants. Ranks start in another way (spawn.h).
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/system/environment.h"
#include "base/system/unique_fd.h"
#include "launch/loop/event_loop.h"
#include "launch/loop/timer.h"

namespace fleetrun::launch {

struct HelperRequest {
  std::vector<std::string> command;  // the first word is a path that exec takes
  const Environment& environment;
  int output_fd = -1;             // a file, for stdout and stderr; stdin has nothing
  std::uint64_t most_output = 0;  // bytes of any file that it writes to; who writes more is ended by SIGXFSZ
  Clock::duration time_limit;     // then it is killed
};

class HelperProgram {
 public:
  // Starts it. Calls `on_end` from the loop when it has ended, however it did. Throws Error(os) when it cannot be started.
  HelperProgram(EventLoop& loop, const HelperRequest& request, std::function<void()> on_end);
  ~HelperProgram();  // it goes on, and nobody hears of its end
  HelperProgram(const HelperProgram&) = delete;
  HelperProgram& operator=(const HelperProgram&) = delete;

 private:
  void kill_tree() const;
  void end();

  EventLoop& loop_;
  std::function<void()> on_end_;
  pid_t pid_ = -1;
  UniqueFd pidfd_;  // none: it has ended
  Timer late_;
};

}  // namespace fleetrun::launch
