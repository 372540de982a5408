// The stacks of processes: of Python by py-spy, or by the faulthandler of the rank if it has registered that
// (stacks_by_signal.h), else by gdb. Runs beside everything else; a process that is stopped or waits for a device can hold a
// debugger up, so there is a deadline.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/system/environment.h"
#include "base/system/unique_fd.h"
#include "launch/loop/event_loop.h"
#include "launch/process/helper_program.h"
#include "launch/report/stacks_by_signal.h"

namespace fleetrun::launch {

struct StackTarget {
  pid_t pid = -1;
  std::string file;  // for people
  UniqueFd output;   // to write to
  UniqueFd log;      // of its stderr, to read from; empty: none
};

class StackDump {
 public:
  static constexpr auto kPatience = std::chrono::seconds(30);  // gdb reads the symbols of PyTorch first

  StackDump(EventLoop& loop, const Environment& environment);
  ~StackDump();  // debuggers go on
  StackDump(const StackDump&) = delete;
  StackDump& operator=(const StackDump&) = delete;

  // Calls `done` when all debuggers have ended, at once when there is none. Gives the files that will be written.
  // While an earlier call is under way nothing new is started, and `done` is called at the end of that one.
  std::vector<std::string> begin(std::vector<StackTarget> targets, std::function<void()> done);
  bool under_way() const { return left_ > 0; }

 private:
  bool start(StackTarget& target);
  bool start_debugger(const std::vector<std::string>& command, const StackTarget& target);
  void call_done();
  void on_end();

  EventLoop& loop_;
  const Environment& environment_;
  std::vector<std::unique_ptr<HelperProgram>> debuggers_;  // of the last call
  std::vector<std::unique_ptr<StacksBySignal>> asked_;     // likewise
  std::size_t left_ = 0;                                   // of both
  std::vector<std::function<void()>> done_;
};

// The command that writes the stacks of `pid` to its stdout; empty when the machine has none. `python`: only one that knows Python.
std::vector<std::string> stack_command(pid_t pid, bool python, const Environment& environment);

}  // namespace fleetrun::launch
