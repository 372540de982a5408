#include "comm/gloo/mesh_state.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fleetrun::comm {
namespace {

constexpr std::size_t kMostLinks = 4;  // that an error names
constexpr const char* kProven = "proven";
constexpr const char* kFailed = "failed";
constexpr const char* kMissing = "missing";
constexpr const char* kLeft = "left";  // as kMissing, and the peer left

bool misses(const MeshState& state, int peer) { return state.missing && state.missing->peer == peer; }

// Of a link that both ends miss: whether the state of the other end says more.
bool is_said_by_peer(const MeshState& state, int rank, const MeshState& of_peer) {
  return state.peer_left != of_peer.peer_left ? state.peer_left : state.missing->peer < rank;
}

// Each link once. If both ends of some links miss each other, only those: another rank may wait for one that is still busy with its own link.
std::vector<std::string> missing_links(const std::vector<MeshState>& states, const Party& party) {
  std::vector<std::string> of_both, of_one, left;
  for (std::size_t i = 0; i < states.size(); ++i) {
    const MeshState& state = states[i];
    if (!state.missing) continue;
    const int rank = static_cast<int>(i);
    const MissingLink& link = *state.missing;
    const MeshState& of_peer = states[static_cast<std::size_t>(link.peer)];
    const bool both = misses(of_peer, rank);
    if (both && is_said_by_peer(state, rank, of_peer)) continue;
    (state.peer_left ? left
     : both          ? of_both
                     : of_one)
        .push_back(fmt::format("no connection between rank {} at {} and rank {} at {}: {}",
                               party.name_of(rank), link.own_end, party.name_of(link.peer), link.end_of_peer,
                               state.why));
  }
  return !of_both.empty() ? of_both : !of_one.empty() ? of_one : left;
}

}  // namespace

std::string pack(const MeshState& state) {
  if (state.proven) return kProven;
  if (!state.missing) return fmt::format("{}\n{}", kFailed, state.why);
  return fmt::format("{}\n{}\n{}\n{}\n{}", state.peer_left ? kLeft : kMissing, state.missing->peer,
                     state.missing->own_end, state.missing->end_of_peer, state.why);
}

MeshState unpack_mesh_state(const std::string& packed) {
  if (packed == kProven) return {.proven = true, .missing = std::nullopt, .why = {}};
  std::string rest = packed;
  const auto take_line = [&rest] {
    const std::size_t end = rest.find('\n');
    std::string line = rest.substr(0, end);
    rest.erase(0, end == std::string::npos ? end : end + 1);
    return line;
  };
  MeshState state;
  const std::string kind = take_line();
  if (kind == kMissing || kind == kLeft) {
    state.peer_left = kind == kLeft;
    const int peer = std::stoi(take_line());
    const std::string own_end = take_line();
    state.missing = MissingLink{peer, own_end, take_line()};
  }
  state.why = rest;
  return state;
}

std::optional<std::string> describe_problem(const std::vector<MeshState>& states, const Party& party) {
  std::vector<std::string> links = missing_links(states, party);
  if (links.size() > kMostLinks) {
    const std::size_t more = links.size() - kMostLinks;
    links.resize(kMostLinks);
    links.push_back(fmt::format("and {} more", more));
  }
  if (!links.empty()) return fmt::format("{}", fmt::join(links, "; "));
  const auto unproven = std::find_if(states.begin(), states.end(), [](auto& state) { return !state.proven; });
  if (unproven == states.end()) return std::nullopt;
  return fmt::format("rank {} says: {}", party.name_of(static_cast<int>(unproven - states.begin())),
                     unproven->why);
}

}  // namespace fleetrun::comm
