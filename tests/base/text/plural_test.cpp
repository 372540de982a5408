#include "base/text/plural.h"

#include <doctest/doctest.h>

#include "base/text/name_ranks.h"

namespace fleetrun::plural_test {
namespace {

TEST_CASE("a noun has its ending for every number but 1") {
  CHECK(plural(1, "step") == "1 step");
  CHECK(plural(0, "step") == "0 steps");
  CHECK(plural(std::size_t{12}, "process", "es") == "12 processes");
}

TEST_CASE("verbs follow the number of ranks") {
  CHECK(ranks_are({3}) == "rank 3 is");
  CHECK(ranks_are({0, 2}) == "ranks 0, 2 are");
  CHECK(ranks_have({3}) == "rank 3 has");
  CHECK(ranks_have({0, 2}) == "ranks 0, 2 have");
}

}  // namespace
}  // namespace fleetrun::plural_test
