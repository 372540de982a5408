// The commands that start fleetrun on the other nodes of a run.
#pragma once
#include <string>
#include <vector>

#include "launch/schedulers/allocation.h"

namespace fleetrun::launch {

struct StartCommand {
  std::vector<std::string> words;  // the first one is looked up on PATH
  std::vector<int> nodes;          // that it starts
};

// `agent` are the words that run on each node. This host is the first node of `allocation`, which says what starts the others.
// srun, pbsdsh and mpirun start all of them with one command; blaunch and ssh need a command per node.
std::vector<StartCommand> start_commands(const Allocation& allocation, const std::vector<std::string>& agent);

// Whether the starter passes its standard input on to what it starts.
bool forwards_input(StartBy starter);
// Whether what it starts has the environment of the starter.
bool forwards_environment(StartBy starter);

}  // namespace fleetrun::launch
