// The middle of some values.
#pragma once
#include <algorithm>
#include <cstddef>
#include <vector>

namespace fleetrun::launch {

// Of an even number of values, the greater one in the middle: of two nodes the faster one sets the standard.
inline double upper_median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace fleetrun::launch
