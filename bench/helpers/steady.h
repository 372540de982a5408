// When a program has reached its speed; steady.py has the same rule.
#pragma once
#include <algorithm>
#include <vector>

namespace fleetrun::bench {

// Whether the last three times agree within 2 %, or 20 were taken.
inline bool warmed_up(const std::vector<double>& times) {
  constexpr std::size_t kAlike = 3, kMost = 20;
  constexpr double kAgree = 1.02;  // slowest over fastest
  if (times.size() >= kMost) return true;
  if (times.size() < kAlike) return false;
  const auto [least, most] = std::minmax_element(times.end() - kAlike, times.end());
  return *most <= kAgree * *least;
}

}  // namespace fleetrun::bench
