#include "runtime/training/ranks/replicas.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error/error.h"
#include "base/text/name_ranks.h"

namespace fleetrun::runtime {
namespace {

using Ranks = std::vector<int>;

}  // namespace

std::optional<std::string> find_difference(const std::vector<std::uint64_t>& fingerprints) {
  std::map<std::uint64_t, Ranks> by_value;
  for (std::size_t rank = 0; rank < fingerprints.size(); ++rank)
    by_value[fingerprints[rank]].push_back(static_cast<int>(rank));
  if (by_value.size() < 2) return std::nullopt;
  const auto most = std::max_element(by_value.begin(), by_value.end(), [](const auto& a, const auto& b) {
    return a.second.size() < b.second.size();
  });
  if (most->second.size() * 2 > fingerprints.size()) {
    Ranks odd;
    for (const auto& [value, ranks] : by_value)
      if (value != most->first) odd.insert(odd.end(), ranks.begin(), ranks.end());
    std::sort(odd.begin(), odd.end());
    return fmt::format("the weights of {} differ from those of the other ranks", name_ranks(odd));
  }
  std::vector<std::string> groups;
  for (const auto& [value, ranks] : by_value)
    groups.push_back(fmt::format("{} {:016x}", ranks_have(ranks), value));
  return fmt::format("the weights of the ranks differ, and no majority tells whose are wrong: {}",
                     fmt::join(groups, ", "));
}

void check_replicas(std::uint64_t fingerprint, std::int64_t step, comm::Communicator& communicator) {
  std::vector<std::uint64_t> all(static_cast<std::size_t>(communicator.size()));
  communicator.all_gather({&fingerprint, 1, DType::i64}, {all.data(), all.size(), DType::i64});
  if (const auto difference = find_difference(all))
    throw Error(ErrorKind::diverged, fmt::format("after step {} {}", step, *difference),
                "memory or processor of that rank's machine may be faulty: start again without it");
}

}  // namespace fleetrun::runtime
