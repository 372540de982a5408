// The programs that start the other nodes, while they run: their input, what they say, and how they end.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/system/unique_fd.h"
#include "launch/loop/event_loop.h"
#include "launch/loop/timer.h"
#include "launch/starters/agent_order.h"
#include "launch/starters/start_commands.h"
#include "launch/starters/start_problem.h"

namespace fleetrun::launch {

// What a starter gets.
struct StarterInput {
  std::vector<std::string> environment;
  std::string text;  // for its standard input, which stays open afterwards; "": it reads nothing
  std::vector<std::string> nodes;  // names of what it starts, for messages
};

// More than 10 members: the descriptors and the end of one process.
class StartedProgram {
 public:
  using Tell = std::function<void(const StartProblem&)>;

  // `tell` is called when it ends, and when it says that a node has ended. Throws Error(os).
  StartedProgram(EventLoop& loop, const StartCommand& command, StarterInput input, Tell tell);
  ~StartedProgram();
  StartedProgram(const StartedProgram&) = delete;
  StartedProgram& operator=(const StartedProgram&) = delete;

  bool runs() const { return static_cast<bool>(pidfd_); }
  std::string describe() const;            // "node 2 (n3): ssh"
  bool has_told() const { return told_; }  // that it has ended
  void close_input();                      // what it started ends
  void kill() const;

 private:
  void feed();
  void hear(std::string_view line);
  void keep(std::string_view words);
  void end();
  void tell(const std::string& nodes, const std::string& ended, int code);

  EventLoop& loop_;
  std::string name_;                // "ssh"
  std::vector<int> ranks_;          // of the nodes that it starts
  std::vector<std::string> nodes_;  // their names
  Tell tell_;
  std::string input_;  // that it has not taken yet
  UniqueFd in_, out_, err_;
  pid_t pid_ = -1;
  UniqueFd pidfd_;  // none: it has ended
  std::string words_;
  bool told_ = false;
  std::optional<LineReader> said_, complained_;
  Timer late_;
};

// The line with which an agent says on its standard output that it ends: by then the starter may still run for others.
std::string end_of_agent(int node, int code);

}  // namespace fleetrun::launch
