#include "launch/cli/flags/rank_set.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include <fmt/format.h>

#include "base/error/error.h"
#include "base/text/split_list.h"

namespace fleetrun::launch {
namespace {

std::optional<int> as_number(std::string_view text) {
  int number = -1;
  const auto [stop, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (problem != std::errc{} || stop != text.data() + text.size() || number < 0) return std::nullopt;
  return number;
}

std::optional<std::pair<int, int>> as_range(const std::string& item) {
  const auto dash = std::min(item.find('-'), item.size());
  const auto first = as_number(item.substr(0, dash));
  const auto last = dash == item.size() ? first : as_number(item.substr(dash + 1));
  if (!first || !last || *last < *first) return std::nullopt;
  return std::pair(*first, *last);
}

}  // namespace

bool RankSet::contains(int rank) const {
  return all || std::any_of(ranges.begin(), ranges.end(),
                            [&](const auto& range) { return rank >= range.first && rank <= range.second; });
}

std::vector<int> RankSet::below(int count, const std::string& source) const {
  for (const auto& range : ranges)
    if (range.second >= count)
      throw Error(ErrorKind::usage,
                  fmt::format("{} lists rank {}, the run has {}", source, range.second,
                              count == 1 ? "rank 0 only" : fmt::format("the ranks 0 to {}", count - 1)));
  std::vector<int> ranks;
  for (int rank = 0; rank < count; ++rank)
    if (contains(rank)) ranks.push_back(rank);
  return ranks;
}

RankSet parse_ranks(const std::string& source, const std::string& text) {
  RankSet set{.text = text, .all = text == "all"};
  if (set.all || text == "none") return set;
  for (const std::string& item : split_list(text)) {
    const auto range = as_range(item);
    if (!range)
      throw Error(ErrorKind::usage,
                  fmt::format("{} is \"{}\", must be ranks like 0,3 or 4-7, all, or none", source, text));
    set.ranges.push_back(*range);
  }
  return set;
}

}  // namespace fleetrun::launch
