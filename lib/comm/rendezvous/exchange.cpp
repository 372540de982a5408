#include "comm/rendezvous/exchange.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error/error.h"

namespace fleetrun::comm {
namespace {

std::string key_of(const std::string& name, int rank) { return fmt::format("exchange/{}/{}", name, rank); }

std::vector<int> missing_ranks(const Party& party, const std::string& name) {
  std::vector<int> missing;
  for (int rank = 0; rank < party.size; ++rank)
    if (!party.store.look(key_of(name, rank))) missing.push_back(party.name_of(rank));
  return missing;
}

[[noreturn]] void throw_missing(const Party& party, const std::string& name, int waited_for,
                                Deadline deadline) {
  std::vector<int> missing = missing_ranks(party, name);
  if (missing.empty()) missing.push_back(party.name_of(waited_for));  // it came just now, too late
  throw Error(ErrorKind::temporary,
              fmt::format("rank {} waited {:g} s for rank {} to bring \"{}\"", party.name(),
                          deadline.total_seconds(), fmt::join(missing, ", "), name));
}

// Name and value of each fact with their lengths before them, so that any bytes may be in them.
std::string pack(const Facts& facts) {
  std::string packed;
  for (const auto& [name, value] : facts)
    packed += fmt::format("{}:{}{}:{}", name.size(), name, value.size(), value);
  return packed;
}

std::string take_text(std::string_view& packed) {
  const std::size_t colon = packed.find(':');
  const std::size_t length = std::stoul(std::string(packed.substr(0, colon)));
  std::string text(packed.substr(colon + 1, length));
  packed.remove_prefix(colon + 1 + length);
  return text;
}

Facts unpack(std::string_view packed) {
  Facts facts;
  while (!packed.empty()) {
    std::string name = take_text(packed);
    facts.emplace_back(std::move(name), take_text(packed));
  }
  return facts;
}

std::string describe_fact(const Facts& facts, std::size_t index) {
  if (index >= facts.size()) return "no such fact";
  return fmt::format("{} {}", facts[index].first, facts[index].second);
}

[[noreturn]] void throw_difference(const Party& party, const Facts& first, const Facts& other,
                                   int other_rank) {
  const auto [ours, theirs] = std::mismatch(first.begin(), first.end(), other.begin(), other.end());
  const auto index = static_cast<std::size_t>(ours - first.begin());
  const bool same_name = ours != first.end() && theirs != other.end() && ours->first == theirs->first;
  const std::string what = same_name ? ours->first : fmt::format("fact {}", index + 1);
  const auto say = [&](const Facts& facts) {
    return same_name ? facts[index].second : describe_fact(facts, index);
  };
  throw Error(ErrorKind::protocol,
              fmt::format("ranks differ in {}: rank {} has {}, rank {} has {}", what, party.name_of(0),
                          say(first), party.name_of(other_rank), say(other)));
}

}  // namespace

std::vector<std::string> exchange(const Party& party, const std::string& name, const std::string& value,
                                  Deadline deadline) {
  party.store.set(key_of(name, party.rank), value);
  std::vector<std::string> values;
  for (int rank = 0; rank < party.size; ++rank) {
    const std::optional<std::string> there = party.store.look(key_of(name, rank));
    try {
      values.push_back(there ? *there : party.store.get(key_of(name, rank), deadline));
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::temporary || !deadline.passed()) throw;
      throw_missing(party, name, rank, deadline);
    }
  }
  return values;
}

void agree(const Party& party, const std::string& name, const Facts& facts, Deadline deadline) {
  const std::vector<std::string> all = exchange(party, name, pack(facts), deadline);
  for (int rank = 1; rank < party.size; ++rank)
    if (all[static_cast<std::size_t>(rank)] != all[0])
      throw_difference(party, unpack(all[0]), unpack(all[static_cast<std::size_t>(rank)]), rank);
}

std::vector<std::optional<std::string>> collect_states(const Party& party, const std::string& name,
                                                       const std::string& state, Deadline deadline) {
  std::vector<std::optional<std::string>> states(static_cast<std::size_t>(party.size));
  const auto take = [&](int rank) -> std::optional<std::string> {
    try {
      if (rank == party.rank) party.store.set(key_of(name, rank), state);
      const auto there = party.store.look(key_of(name, rank));
      return there || deadline.passed() ? there : party.store.get(key_of(name, rank), deadline);
    } catch (const Error&) {
      return std::nullopt;  // it does not come in time, or the store is gone: that is the answer
    }
  };
  states[static_cast<std::size_t>(party.rank)] = take(party.rank);
  for (int rank = 0; rank < party.size; ++rank)
    if (rank != party.rank) states[static_cast<std::size_t>(rank)] = take(rank);
  return states;
}

std::string blame(const std::vector<std::optional<std::string>>& states, const Party& party) {
  const int size = static_cast<int>(states.size());
  std::vector<int> silent;
  for (int other = 0; other < size; ++other)
    if (other != party.rank && !states[static_cast<std::size_t>(other)])
      silent.push_back(party.name_of(other));
  const auto& ours = states[static_cast<std::size_t>(party.rank)];
  if (!ours) return "it is not known which rank was waited for, for the store is gone too";
  if (!silent.empty()) return fmt::format("waited for rank {}", fmt::join(silent, ", "));
  for (int other = 0; other < size; ++other)
    if (states[static_cast<std::size_t>(other)] != ours)
      return fmt::format("rank {} failed in {}", party.name_of(other),
                         *states[static_cast<std::size_t>(other)]);
  return "all ranks are there, but their connection broke";
}

}  // namespace fleetrun::comm
