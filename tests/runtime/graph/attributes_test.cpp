#include "runtime/graph/attributes.h"

#include <doctest/doctest.h>

#include "base/error/error.h"

namespace fleetrun::runtime::attributes_test {
namespace {

TEST_CASE("an attribute reads back from its text, with its type") {
  const std::vector<Attribute> attributes = {true,
                                             false,
                                             std::int64_t{-3},
                                             0.1,
                                             1.0,
                                             1e-300,
                                             std::string("max"),
                                             std::vector<std::int64_t>{},
                                             std::vector<std::int64_t>{1, -2},
                                             std::vector<double>{0.5, 124.0, 1e-300}};
  for (const Attribute& attribute : attributes) CHECK(parse_attribute(describe(attribute)) == attribute);
}

TEST_CASE("a whole floating-point number keeps its decimal point") {
  CHECK(describe(Attribute(2.0)) == "2.0");
}

TEST_CASE("a text that is not an attribute is quoted") {
  CHECK_THROWS_WITH_AS(parse_attribute("max"),
                       "max is not an attribute: wanted true, false, a number, \"text\" or [1,2]", Error);
  CHECK_THROWS_WITH_AS(parse_attribute("[1,x]"), "[1,x] is not a list of numbers", Error);
}

}  // namespace
}  // namespace fleetrun::runtime::attributes_test
