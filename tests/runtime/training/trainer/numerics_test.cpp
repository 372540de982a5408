#include "runtime/training/trainer/numerics.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

namespace fleetrun::runtime::numerics_test {
namespace {

TEST_CASE("a NaN has no sign, and an infinity has one") {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  CHECK(describe_number(std::copysign(kNan, -1.0)) == "nan");
  CHECK(describe_number(kNan) == "nan");
  CHECK(describe_number(-std::numeric_limits<double>::infinity()) == "-inf");
  CHECK(describe_number(-1.5) == "-1.5");
}

}  // namespace
}  // namespace fleetrun::runtime::numerics_test
