// A communicator composed of two others: one inside groups of consecutive ranks, and one between the groups. It depends
// on no backend or device: each of its collectives is made of collectives of its parts.
#pragma once
#include <memory>
#include <string>

#include "comm/collective/circle.h"
#include "comm/collective/communicator.h"
#include "comm/rendezvous/exchange.h"

namespace fleetrun::comm {

enum class HierarchicalAlgorithm {
  leader,   // only the first rank of each group sums with other groups
  scatter,  // every rank sums its slice with other groups
};

struct HierarchicalOptions {
  Party party;         // its store must outlive the communicator
  int group_size = 0;  // above 1; divides the number of ranks
  HierarchicalAlgorithm algorithm = HierarchicalAlgorithm::leader;
  std::string name = "0";  // different for each communicator of the same party
};

// Calls `make` for this rank's group, then for the ranks at the same place in each group (with leader: only on
// leaders).
std::unique_ptr<Communicator> make_hierarchical(const HierarchicalOptions& options,
                                                const MakeCommunicator& make);

}  // namespace fleetrun::comm
