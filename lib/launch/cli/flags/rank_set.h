// Ranks as people write them: "0", "0,3", "4-7,12", "all", "none".
#pragma once
#include <string>
#include <utility>
#include <vector>

namespace fleetrun::launch {

struct RankSet {
  std::string text;
  bool all = false;
  std::vector<std::pair<int, int>> ranges;  // first and last

  bool contains(int rank) const;
  // Those below `count`. Throws Error(usage) when it lists others; `source` is "--console".
  std::vector<int> below(int count, const std::string& source) const;
};

// Throws Error(usage).
RankSet parse_ranks(const std::string& source, const std::string& text);

}  // namespace fleetrun::launch
