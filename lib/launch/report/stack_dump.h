// The stacks of processes, by the debuggers that the machine has: py-spy for Python, else gdb. Runs beside everything
// else; a process that is stopped or waits for a device can hold a debugger up, so there is a deadline.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/system/environment.h"
#include "base/system/unique_fd.h"
#include "launch/loop/event_loop.h"
#include "launch/process/helper_program.h"

namespace fleetrun::launch {

struct StackTarget {
  pid_t pid = -1;
  std::string file;  // for people
  UniqueFd output;   // to write to
};

class StackDump {
 public:
  StackDump(EventLoop& loop, const Environment& environment);
  ~StackDump();  // debuggers go on
  StackDump(const StackDump&) = delete;
  StackDump& operator=(const StackDump&) = delete;

  // Calls `done` when all debuggers have ended, at once when there is none. Gives the files that will be written.
  // While an earlier call is under way nothing new is started, and `done` is called at the end of that one.
  std::vector<std::string> begin(const std::vector<StackTarget>& targets, std::function<void()> done);

 private:
  bool start(const StackTarget& target);
  void call_done();
  void on_end();

  EventLoop& loop_;
  const Environment& environment_;
  std::vector<std::unique_ptr<HelperProgram>> debuggers_;  // of the last call
  std::size_t left_ = 0;                                   // of them
  std::vector<std::function<void()>> done_;
};

// The command that writes the stacks of `pid` to its stdout; empty when the machine has none.
std::vector<std::string> stack_command(pid_t pid, const std::string& executable,
                                       const Environment& environment);

}  // namespace fleetrun::launch
