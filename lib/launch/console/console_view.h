// The logs of the ranks that the user wants to see, on our stdout as they grow.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "launch/cli/log_prefix.h"
#include "launch/console/log_follower.h"
#include "launch/console/output_stream.h"
#include "launch/loop/event_loop.h"

namespace fleetrun::launch {

struct ConsoleSource {
  LogFile log;
  LogPrefix prefix;  // "": the lines stand as they are
  LinePlace place;
  OutputStream* stream = nullptr;  // that shows it
};

class ConsoleView {
 public:
  // The files exist, and the streams outlive the view. Throws Error(io) when a file cannot be read.
  ConsoleView(EventLoop& loop, const std::vector<ConsoleSource>& sources);

  void look();  // there may be more
  // Everything up to the present ends. False: the reader of the stream did not take all of it.
  bool finish(const Patience& patience);

 private:
  std::vector<std::unique_ptr<LogFollower>> followers_;
};

}  // namespace fleetrun::launch
