#include "comm/collective/circle.h"

#include <fmt/format.h>

#include "comm/rendezvous/part_of_store.h"

namespace fleetrun::comm {
namespace {

// Every `step`th rank from `first` on, before `end`.
struct Members {
  int first, step, end;
};

Circle make_circle(const CircleOptions& options, const std::string& kind, const Members& members,
                   const MakeCommunicator& make) {
  const Party& all = options.party;
  Circle circle = {std::make_unique<PartOfStore>(
                       all.store, fmt::format("{} of {} {}/", kind, options.name, members.first)),
                   nullptr};
  Party party = {*circle.store, (all.rank - members.first) / members.step, 0, {}};
  for (int rank = members.first; rank < members.end; rank += members.step)
    party.names.push_back(all.name_of(rank));
  party.size = static_cast<int>(party.names.size());
  circle.communicator = make(party, options.name);
  return circle;
}

}  // namespace

Circle make_group(const CircleOptions& options, const MakeCommunicator& make) {
  const int first = options.party.rank / options.group_size * options.group_size;
  return make_circle(options, "group", {first, 1, first + options.group_size}, make);
}

Circle make_places(const CircleOptions& options, const MakeCommunicator& make) {
  const int first = options.party.rank % options.group_size;
  return make_circle(options, "places", {first, options.group_size, options.party.size}, make);
}

}  // namespace fleetrun::comm
