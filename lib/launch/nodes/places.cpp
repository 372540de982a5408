#include "launch/nodes/places.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error/error.h"
#include "base/system/file.h"
#include "launch/logs/log_names.h"
#include "launch/logs/rank_logs.h"

namespace fleetrun::launch {
namespace {

constexpr std::size_t kLongestPlaces = 64 << 20;  // bytes; 65,536 ranks have about 1 MB

}  // namespace

RankRange ranks_of_node(const Placed& placed, int node) {
  RankRange range;
  for (int each = 0; each <= node; ++each) {
    range.first += range.count;
    range.count = static_cast<int>(placed.nodes.at(static_cast<std::size_t>(each)).device_ids.size());
  }
  return range;
}

int world_of(const Placed& placed) {
  return ranks_of_node(placed, static_cast<int>(placed.nodes.size()) - 1).last() + 1;
}

std::optional<int> node_of_rank(const Placed& placed, int rank) {
  int first = 0;
  for (int node = 0; node < std::ssize(placed.nodes); ++node) {
    const auto count = static_cast<int>(placed.nodes[static_cast<std::size_t>(node)].device_ids.size());
    if (RankRange{first, count}.contains(rank)) return node;
    first += count;
  }
  return std::nullopt;
}

std::string name_of_node(const Placed& placed, int node) {
  const NodePlace& place = placed.nodes.at(static_cast<std::size_t>(node));
  return fmt::format("node {} ({}, {})", node, place.address, place.host);
}

std::optional<int> number_of_node(const Placed& placed, const NodePlace& node) {
  const auto found = std::ranges::find_if(placed.nodes, [&](const NodePlace& other) {
    return other.address == node.address && other.logs == node.logs;
  });
  if (found == placed.nodes.end()) return std::nullopt;
  return static_cast<int>(found - placed.nodes.begin());
}

void write_places(const LogFolder& logs, const Placed& placed) {
  logs.write(kNodesName, places_text(placed));
}

// A file of somebody else tells nothing.
std::optional<Placed> read_places(const std::string& folder) {
  try {
    return parse_places(read_file(folder + "/" + kNodesName, kLongestPlaces));
  } catch (const Error&) {
    return std::nullopt;
  }
}

// Reads the newest first: the places before it are in attempt-K/ by then.
std::vector<Placed> later_places(const std::string& folder, int attempt) {
  std::vector<Placed> later;
  const auto newest = read_places(folder);
  if (!newest || newest->attempt <= attempt) return later;
  for (const int kept : kept_attempts(folder)) {
    if (kept <= attempt || kept >= newest->attempt) continue;
    const auto places = read_places(fmt::format("{}/attempt-{}", folder, kept));
    if (places && places->attempt > (later.empty() ? attempt : later.back().attempt))
      later.push_back(*places);
  }
  later.push_back(*newest);
  return later;
}

}  // namespace fleetrun::launch
