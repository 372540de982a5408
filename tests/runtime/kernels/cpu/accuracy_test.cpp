#include <doctest/doctest.h>

#include <limits>

#include "base/error/error.h"
#include "support/run_op.h"

namespace fleetrun::runtime::accuracy_test {
namespace {

using test::Floats;
using Labels = std::vector<std::int32_t>;

Floats hits(const Floats& scores, const Labels& labels) {
  const auto rows = static_cast<std::int64_t>(labels.size());
  const Shape shape = {rows, static_cast<std::int64_t>(scores.size()) / rows};
  return test::run_op("accuracy", {{"x", {shape, scores}}, {"label", {{rows}, labels}}});
}

TEST_CASE("the highest score counts for top 1, the five highest for top 5") {
  const Floats row = {9, 8, 7, 6, 5, 4};
  CHECK(hits(row, {0}) == Floats{1, 1, 1});
  CHECK(hits(row, {4}) == Floats{0, 1, 1});
  CHECK(hits(row, {5}) == Floats{0, 0, 1});
}

TEST_CASE("of equal scores the lower index is higher") {
  CHECK(hits({1, 1, 1}, {0}) == Floats{1, 1, 1});
  CHECK(hits({1, 1, 1}, {2}) == Floats{0, 1, 1});
}

TEST_CASE("samples without a label are not counted") {
  CHECK(hits({1, 2, 2, 1}, {-1, 0}) == Floats{1, 1, 1});
}

TEST_CASE("scores that are not numbers hit nothing") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  CHECK(hits({nan, nan, nan, nan, nan, nan}, {0}) == Floats{0, 0, 1});
}

TEST_CASE("a label beyond the classes is an error that names the sample") {
  CHECK_THROWS_WITH_AS(hits({1, 2, 3, 4}, {1, 2}),
                       "accuracy: sample 1 of the batch has label 2, there are 2 classes", Error);
}

}  // namespace
}  // namespace fleetrun::runtime::accuracy_test
