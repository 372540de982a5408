#include "comm/gloo/lost_peer.h"

#include <fmt/format.h>

namespace fleetrun::comm {
namespace {

using Failings = std::vector<std::optional<Failing>>;  // by rank; nothing: no answer

// Whose loss began it, as far as the ranks can tell; nothing when it was no loss. `self` has lost somebody.
std::optional<int> first_to_lose(const Failings& failings, int self) {
  int who = self;
  for (std::size_t steps = 0; steps < failings.size(); ++steps) {  // several breaks at once may make a circle
    const int lost = failings[static_cast<std::size_t>(who)]->lost->rank;
    const auto& theirs = failings[static_cast<std::size_t>(lost)];
    if (!theirs) return who;
    if (!theirs->lost) return std::nullopt;
    if (theirs->lost->rank == who)  // the one with the weaker evidence only saw the other one give up
      return theirs->lost->state > failings[static_cast<std::size_t>(who)]->lost->state ? lost : who;
    who = lost;
  }
  return self;
}

std::string describe_loss_of(const Failings& failings, int who, const Party& party) {
  const LostPeer& lost = *failings[static_cast<std::size_t>(who)]->lost;
  const std::string subject = who == party.rank ? "" : fmt::format("rank {} ", party.name_of(who));
  return fmt::format("{}lost the connection to rank {} on {}: {}{}{}", subject, party.name_of(lost.rank),
                     lost.address, describe(lost.state), lost.full_packets_lost ? "; " : "",
                     lost.full_packets_lost ? kFullPacketsLost : "");
}

}  // namespace

std::string pack(const Failing& failing) {
  if (!failing.lost) return failing.where;
  return fmt::format("{}\n{}\n{}\n{}\n{}", failing.where, failing.lost->rank,
                     static_cast<int>(failing.lost->state), failing.lost->full_packets_lost ? 1 : 0,
                     failing.lost->address);
}

Failing unpack_failing(const std::string& packed) {
  const std::size_t end = packed.find('\n');
  Failing failing = {.where = packed.substr(0, end), .lost = std::nullopt};
  if (end == std::string::npos) return failing;
  const std::size_t state = packed.find('\n', end + 1) + 1;
  const std::size_t full = packed.find('\n', state) + 1;
  const std::size_t address = packed.find('\n', full) + 1;
  failing.lost = LostPeer{.rank = std::stoi(packed.substr(end + 1)),
                          .address = packed.substr(address),
                          .state = static_cast<PeerState>(std::stoi(packed.substr(state))),
                          .full_packets_lost = packed[full] == '1'};
  return failing;
}

std::string find_cause(const std::vector<std::optional<std::string>>& answers, const Failing& ours,
                       const Party& party) {
  const bool alone = !answers[static_cast<std::size_t>(party.rank)];
  Failings failings;
  std::vector<std::optional<std::string>> places;
  for (const auto& answer : answers) {
    failings.push_back(answer ? std::optional(unpack_failing(*answer)) : std::nullopt);
    places.push_back(answer ? std::optional(failings.back()->where) : std::nullopt);
  }
  if (!ours.lost) return blame(places, party);
  failings[static_cast<std::size_t>(party.rank)] = ours;
  if (alone) return describe_loss_of(failings, party.rank, party) + "; the store does not answer either";
  const std::optional<int> who = first_to_lose(failings, party.rank);
  return who ? describe_loss_of(failings, *who, party) : blame(places, party);
}

}  // namespace fleetrun::comm
