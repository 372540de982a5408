// The program with which a fleetrun starts the other nodes of its run.
#pragma once
#include <string>

namespace fleetrun::launch {

enum class StartBy { automatic, none, srun, pbsdsh, blaunch, mpirun, ssh };

std::string name_of(StartBy starter);  // "srun", as --start_by takes it

}  // namespace fleetrun::launch
