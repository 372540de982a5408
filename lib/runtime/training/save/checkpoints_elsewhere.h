// Checkpoints on the disk of a node that is not rank 0's. Only rank 0 saves and resumes, so a training that begins with its nodes in another
// order, and without a disk that they share, does not see them.
#pragma once
#include <string>

#include "base/run/rank_env.h"
#include "comm/collective/communicator.h"

namespace fleetrun::runtime {

// Every rank calls it, before rank 0 resumes from checkpoint.dir, which is `folder`. Returns a warning for the user on rank 0 if another node
// has there a checkpoint of a later step than rank 0; "": none has, and on all other ranks.
std::string warn_of_checkpoints_elsewhere(const std::string& folder, const RankEnv& env,
                                          comm::Communicator& communicator);

}  // namespace fleetrun::runtime
