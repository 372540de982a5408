// The program with which a fleetrun starts the other nodes of its run.
#pragma once
#include <string>

namespace fleetrun::launch {

enum class StartBy { automatic, none, srun, pbsdsh, blaunch, mpirun, ssh };

// The source of --node_rank on the node that starts the others.
constexpr const char* kPlaceOfStarter = "the rank of the node that starts the others";

std::string name_of(StartBy starter);  // "srun", as --start_by takes it

}  // namespace fleetrun::launch
