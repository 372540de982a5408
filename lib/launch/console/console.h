// Our stdout and stderr, as the middle process uses them: never blocking, the progress line out of the way.
#pragma once
#include <string_view>

#include "launch/cli/flags/launch_options.h"
#include "launch/console/output_stream.h"
#include "launch/loop/event_loop.h"

namespace fleetrun::launch {

struct Console {
  Console(EventLoop& loop, LogLevel least);  // lines of the log below `least` are left out

  void log(LogLevel level, std::string_view message);  // as the original writes to its log
  void say(std::string_view message);                  // "fleetrun: <message>"
  void warn(std::string_view message);                 // "fleetrun: warning: <message>", in red on a terminal
  void show(std::string_view lines);                   // with their ends; each text of ours goes through here
  void show_problem(std::string_view lines);           // the same; the first line is red on a terminal

  // A message begins on a line of its own, also when a rank has shown an unfinished one.
  void write_message(std::string_view text);

  void hold();  // the shell has the terminal now
  void release();

  OutputStream out, err;
  const bool out_has_colours, err_has_colours;
  const bool is_one_place;  // where stdout and stderr go
  LogLevel least;
};

}  // namespace fleetrun::launch
