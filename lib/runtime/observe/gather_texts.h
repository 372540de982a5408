// What each rank has to say, on rank 0, and what rank 0 has to say, on each rank.
#pragma once
#include <string>
#include <vector>

#include "comm/collective/communicator.h"

namespace fleetrun::runtime {

// By rank; the others get nothing. Every rank calls it. One text travels at a time, so that rank 0 alone needs room for all.
std::vector<std::string> gather_texts(const std::string& mine, comm::Communicator& communicator);

// Rank 0's. Every rank calls it.
std::string text_of_first(std::string mine, comm::Communicator& communicator);

}  // namespace fleetrun::runtime
