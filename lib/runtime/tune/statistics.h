// The middle of measured times, and how sure it is.
#pragma once
#include <vector>

namespace fleetrun::runtime {

struct Interval {
  double low = 0, high = 0;

  bool operator==(const Interval&) const = default;
};

// Of at least one value; the mean of the two middle ones when their number is even.
double median(std::vector<double> values);

// The 95 % interval of the median by ranks (binomial), whatever the distribution. With fewer than 6 values it is the
// range of all of them, which is less sure. bench/helpers/intervals.py has the same rule.
Interval interval_of_median(std::vector<double> values);

}  // namespace fleetrun::runtime
