#include "base/text/name_ranks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fleetrun {

std::string name_ranks(const std::vector<int>& ranks) {
  return fmt::format("{} {}", ranks.size() == 1 ? "rank" : "ranks", fmt::join(ranks, ", "));
}

std::string ranks_are(const std::vector<int>& ranks) {
  return name_ranks(ranks) + (ranks.size() == 1 ? " is" : " are");
}

std::string ranks_have(const std::vector<int>& ranks) {
  return name_ranks(ranks) + (ranks.size() == 1 ? " has" : " have");
}

}  // namespace fleetrun
