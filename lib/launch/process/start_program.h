// Starts a program that is not a rank, with Boost.Process.
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "launch/loop/event_loop.h"

namespace fleetrun::launch {

struct StartRequest {
  std::vector<std::string> command;      // the first word is a path that exec takes
  std::vector<std::string> environment;  // "NAME=value"
  int input_fd = -1, output_fd = -1, error_fd = -1;
  std::uint64_t most_output = std::numeric_limits<
      std::uint64_t>::max();  // bytes of any file that it writes to; who writes more is ended by SIGXFSZ
};

// The program has a process group of its own and ends when this process does. Throws Error(os).
pid_t start_program(EventLoop& loop, const StartRequest& request);

}  // namespace fleetrun::launch
