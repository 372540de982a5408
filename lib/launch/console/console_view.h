// The logs of the ranks that the user wants to see, on our stdout as they grow.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "launch/cli/flags/log_prefix.h"
#include "launch/console/log_follower.h"
#include "launch/console/output_stream.h"
#include "launch/loop/event_loop.h"

namespace fleetrun::launch {

struct ConsoleSource {
  LogFile log;
  LogPrefix prefix;  // "": the lines stand as they are
  LinePlace place;
  OutputStream* stream = nullptr;  // that shows it
  bool has_colours = false;        // the stream does
};

// What stands in front of each line; in colours, each rank has its own.
std::function<std::string()> line_start(const LogPrefix& prefix, const LinePlace& place, bool has_colours);

class ConsoleView {
 public:
  // The files exist, and the streams outlive the view. `keeps_bars`: the state of a progress bar is not written to the stream before the
  // bar is complete; bar() has it. Throws Error(io) when a file cannot be read.
  ConsoleView(EventLoop& loop, const std::vector<ConsoleSource>& sources, bool keeps_bars);

  void look();  // there may be more
  // The progress bar that a rank draws now, of several the first one; "": there is none.
  std::string bar() const;
  // Everything up to the present ends. False: the reader of the stream did not take all of it.
  bool finish(const Patience& patience);

 private:
  std::vector<std::unique_ptr<LogFollower>> followers_;
};

}  // namespace fleetrun::launch
