#include "base/text/csv.h"

#include <doctest/doctest.h>

namespace fleetrun::csv_test {
namespace {

TEST_CASE("a field has quotes only where it needs them") {
  CHECK(csv_field("cat") == "cat");
  CHECK(csv_field("") == "");
  CHECK(csv_field("a b") == "a b");
  CHECK(csv_field("a,b") == "\"a,b\"");
  CHECK(csv_field("6\" disk") == "\"6\"\" disk\"");
  CHECK(csv_field("two\nlines") == "\"two\nlines\"");
}

}  // namespace
}  // namespace fleetrun::csv_test
