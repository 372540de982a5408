// Why another node did not start, from the process that starts the nodes to the one that waits for them.
#pragma once
#include <functional>
#include <string>
#include <string_view>

#include "launch/loop/event_loop.h"

namespace fleetrun::launch {

struct StartProblem {
  std::string line;   // "node 1 (n2): ssh ended with code 255: ..."
  int exit_code = 0;  // for a run that ends because of it
  bool operator==(const StartProblem&) const = default;
};

std::string to_text(const StartProblem& problem);         // one line, with its end
StartProblem parse_start_problem(std::string_view line);  // Throws Error(internal).

// What a starter and the agents that it started said last, as a StartProblem. `code` is the exit code of the starter or an agent, and
// `words` the end of what they wrote.
StartProblem describe_start_problem(const std::string& nodes, const std::string& ended, int code,
                                    const std::string& words);

// Calls `tell` for each line that arrives on the descriptor.
class LineReader {
 public:
  using Tell = std::function<void(std::string_view line)>;

  LineReader(EventLoop& loop, int fd, Tell tell);
  ~LineReader();
  LineReader(const LineReader&) = delete;
  LineReader& operator=(const LineReader&) = delete;

 private:
  void read();

  EventLoop& loop_;
  int fd_;  // -1: it has reached its end
  Tell tell_;
  std::string text_;
};

}  // namespace fleetrun::launch
