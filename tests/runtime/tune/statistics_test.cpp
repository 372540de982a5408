#include "runtime/tune/statistics.h"

#include <doctest/doctest.h>

#include <random>

namespace fleetrun::runtime::statistics_test {
namespace {

TEST_CASE("the median of an even number of values is the mean of the two in the middle") {
  CHECK(median({3, 1, 2}) == 2);
  CHECK(median({4, 1, 3, 2}) == 2.5);
  CHECK(median({7}) == 7);
}

TEST_CASE("the interval of the median has the ranks of the binomial distribution") {
  std::vector<double> values;
  for (int i = 1; i <= 20; ++i) values.push_back(i);
  CHECK(interval_of_median(values) == Interval{6, 15});  // bench/helpers/intervals.py says the same
  CHECK(interval_of_median({1, 2, 3}) == Interval{1, 3});
  CHECK(interval_of_median({5}) == Interval{5, 5});
}

TEST_CASE("95 % of the intervals contain the true median, whatever the distribution") {
  std::mt19937 random(7);
  std::lognormal_distribution<double> times(
      0, 0.5);  // of median 1, with a long tail like that of measured times
  int hits = 0;
  for (int i = 0; i < 2000; ++i) {
    std::vector<double> values;
    for (int k = 0; k < 24; ++k) values.push_back(times(random));
    const Interval interval = interval_of_median(values);
    hits += interval.low <= 1 && 1 <= interval.high;
  }
  CHECK(hits > 0.94 * 2000);
}

}  // namespace
}  // namespace fleetrun::runtime::statistics_test
