// Checkpoints on the disk of a node that is not rank 0's. Only rank 0 saves and resumes. If the nodes share no disk and begin a training in
// another order than before, rank 0 does not see the checkpoints that it saved on another node.
#pragma once
#include <string>

#include "base/run/rank_env.h"
#include "comm/collective/communicator.h"

namespace fleetrun::runtime {

// Every rank calls it, before rank 0 resumes from `folder`, which is checkpoint.dir. Returns a warning for the user on rank 0 if the newest
// checkpoint of another node is of a later step than that of rank 0's node. Returns "" otherwise, and on all other ranks.
std::string warn_of_checkpoints_elsewhere(const std::string& folder, const RankEnv& env,
                                          comm::Communicator& communicator);

}  // namespace fleetrun::runtime
