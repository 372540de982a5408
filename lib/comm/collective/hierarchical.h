// A communicator composed of two others: one inside groups of consecutive ranks, one between the groups. It knows
// neither backend nor device; its collectives are those of its parts, in the order of the calls.
#pragma once
#include <functional>
#include <memory>
#include <string>

#include "comm/collective/communicator.h"
#include "comm/rendezvous/exchange.h"

namespace fleetrun::comm {

enum class HierarchicalAlgorithm {
  leader,   // the first rank of each group alone speaks with other groups
  scatter,  // every rank does, about its slice
};

struct HierarchicalOptions {
  Party party;         // its store must outlive the communicator
  int group_size = 0;  // above 1; divides the number of ranks
  HierarchicalAlgorithm algorithm = HierarchicalAlgorithm::leader;
  std::string name = "0";  // apart from other communicators of the same party
};

// Makes a communicator of the ranks of `party`, which all call it with the same name; called once for each pair of
// these. The party's store outlives what it makes.
using MakeCommunicator =
    std::function<std::unique_ptr<Communicator>(const Party& party, const std::string& name)>;

// Calls `make` for the rank's group, then for the ranks with its place in other groups (leader: on leaders only).
std::unique_ptr<Communicator> make_hierarchical(const HierarchicalOptions& options,
                                                const MakeCommunicator& make);

}  // namespace fleetrun::comm
