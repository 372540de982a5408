#include "runtime/tune/statistics.h"

#include <algorithm>
#include <cmath>

namespace fleetrun::runtime {

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

Interval interval_of_median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const auto count = static_cast<double>(values.size());
  const double reach = 0.98 * std::sqrt(count);  // 1.96 standard deviations of Binomial(n, 1/2)
  const double low = std::max(0.0, std::nearbyint(count / 2 - reach) - 1);
  const double high = std::min(count - 1, std::nearbyint(count / 2 + reach));
  return {values[static_cast<std::size_t>(low)], values[static_cast<std::size_t>(high)]};
}

}  // namespace fleetrun::runtime
