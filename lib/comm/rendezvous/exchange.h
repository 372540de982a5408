// What ranks tell each other through the store: small values of all ranks for all ranks, and the check that
// they agree before they work together.
#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "comm/rendezvous/store.h"

namespace fleetrun::comm {

// Who takes part, and where they meet.
struct Party {
  Store& store;
  int rank = 0;
  int size = 1;
  std::vector<int> names = {};  // by rank: what it is called in errors; empty: by its number here

  int name_of(int of_rank) const {
    return names.empty() ? of_rank : names.at(static_cast<std::size_t>(of_rank));
  }
  int name() const { return name_of(rank); }
};

// Every rank calls with the same name (once for each name) and gets the values of all, by rank.
// Throws Error(temporary) that names the ranks that did not come before the deadline.
std::vector<std::string> exchange(const Party& party, const std::string& name, const std::string& value,
                                  Deadline deadline);

// In the order in which they should be reported: {"program", "a41f..."}, {"world size", "4"}, ...
using Facts = std::vector<std::pair<std::string, std::string>>;

// Throws Error(protocol) on every rank, with the same words, when ranks gave different facts: which one,
// between which ranks, and both values.
void agree(const Party& party, const std::string& name, const Facts& facts, Deadline deadline);

// For the time after something went wrong: leaves our state and takes what the others leave within the
// deadline. Never throws; a rank that says nothing has no value, and all have none when the store is gone.
std::vector<std::optional<std::string>> collect_states(const Party& party, const std::string& name,
                                                       const std::string& state, Deadline deadline);

// Which rank a failure of ours comes from, by their collected states: one that does not answer is the one that was waited for; else
// one that is somewhere else than we are. "waited for rank 2"
std::string blame(const std::vector<std::optional<std::string>>& states, const Party& party);

}  // namespace fleetrun::comm
