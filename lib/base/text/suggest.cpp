#include "base/text/suggest.h"

#include <algorithm>
#include <cstddef>

namespace fleetrun {
namespace {

constexpr std::size_t kLettersPerSlip = 3;     // one slip is forgiven for each three letters of a name
constexpr std::size_t kShortestWithSlips = 4;  // letters; with one slip "gpu" would be "cpu"
constexpr std::size_t kShortestBeginning = 3;  // letters that a cut name must have to stand for a longer one
constexpr std::size_t kLongestComparedName = 64;  // bytes; nobody mistypes more, and the cost is quadratic

std::string folded(std::string_view name) {
  std::string text(name);
  for (char& letter : text) {
    if (letter == '-') letter = '_';
    if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
  }
  return text;
}

// Optimal string alignment distance: insertions, deletions, replacements, swaps of neighbours.
std::size_t slips_between(const std::string& a, const std::string& b) {
  std::vector<std::size_t> before_last(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    before_last = std::move(last);
    last = row;
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, replaced});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
  }
  return row[b.size()];
}

std::size_t letters_of(const std::string& name) {
  const std::size_t first = name.find_first_not_of('_');
  return first == std::string::npos ? 0 : name.size() - first;
}

}  // namespace

std::optional<std::string> closest(std::string_view found, const std::vector<std::string>& candidates) {
  if (found.empty() || found.size() > kLongestComparedName) return std::nullopt;
  const std::string typed = folded(found);
  std::optional<std::string> best;
  const std::size_t letters = letters_of(typed);
  std::size_t fewest =
      letters < kShortestWithSlips ? 1 : letters / kLettersPerSlip + 1;  // this many are too many
  for (const std::string& candidate : candidates) {
    const std::size_t apart =
        std::max(candidate.size(), typed.size()) - std::min(candidate.size(), typed.size());
    if (apart >= fewest || candidate.size() > kLongestComparedName) continue;  // each letter apart is a slip
    const std::size_t slips = slips_between(typed, folded(candidate));
    if (slips >= fewest) continue;
    fewest = slips;
    best = candidate;
  }
  if (best || letters < kShortestBeginning) return best;
  for (const std::string& candidate : candidates)
    if (folded(candidate).starts_with(typed)) return candidate;
  return std::nullopt;
}

}  // namespace fleetrun
