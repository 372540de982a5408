// Some of the ranks of a party, with a communicator of their own: the ranks of a group, or the ranks that have the same place in their
// groups. Groups have consecutive ranks and one size.
#pragma once
#include <functional>
#include <memory>
#include <string>

#include "comm/collective/communicator.h"
#include "comm/rendezvous/exchange.h"

namespace fleetrun::comm {

// Makes a communicator for the ranks of `party`. All ranks call it with the same name, once per pair of party and name.
// The party's store outlives the communicator.
using MakeCommunicator =
    std::function<std::unique_ptr<Communicator>(const Party& party, const std::string& name)>;

struct Circle {
  std::unique_ptr<Store> store;                // where only they meet
  std::unique_ptr<Communicator> communicator;  // goes before the store
};

struct CircleOptions {
  Party party;         // its store outlives the circle
  int group_size = 0;  // divides the number of ranks
  std::string name;    // different for each pair of circles of the same party
};

// All ranks of the group call it.
Circle make_group(const CircleOptions& options, const MakeCommunicator& make);
// All ranks with the place of this one call it. In such a circle, rank i is of group i.
Circle make_places(const CircleOptions& options, const MakeCommunicator& make);

}  // namespace fleetrun::comm
