#include "base/name_ranks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fleetrun {

std::string name_ranks(const std::vector<int>& ranks) {
  return fmt::format("{} {}", ranks.size() == 1 ? "rank" : "ranks", fmt::join(ranks, ", "));
}

}  // namespace fleetrun
