#include "launch/nodes/places.h"

#include <fmt/format.h>

#include "base/error/error.h"
#include "base/system/file.h"
#include "launch/logs/log_names.h"

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

}  // namespace fleetrun::launch
