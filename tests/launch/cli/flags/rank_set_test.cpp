#include "launch/cli/flags/rank_set.h"

#include <doctest/doctest.h>

#include "base/error/error.h"

namespace fleetrun::launch::rank_set_test {
namespace {

using Ranks = std::vector<int>;

TEST_CASE("ranks are written one by one, as ranges, all or none") {
  const auto ranks = [](const std::string& text) {
    return parse_ranks("--console", text).below(8, "--console");
  };
  CHECK(ranks("0") == Ranks{0});
  CHECK(ranks("3, 0") == Ranks{0, 3});
  CHECK(ranks("1-3,7,2") == Ranks{1, 2, 3, 7});
  CHECK(ranks("all").size() == 8);
  CHECK(ranks("none").empty());
}

TEST_CASE("what is not a list of ranks is quoted") {
  for (const char* text : {"x", "1-", "-1", "3-1", "0,,1", "", "all,1"})
    CHECK_THROWS_AS(parse_ranks("--console", text), Error);
  CHECK_THROWS_WITH_AS(parse_ranks("--console", "two"),
                       "--console is \"two\", must be ranks like 0,3 or 4-7, all, or none", Error);
}

TEST_CASE("ranks that the run does not have are an error") {
  CHECK_THROWS_WITH_AS(parse_ranks("", "1-4").below(4, "--console"),
                       "--console lists rank 4, the run has the ranks 0 to 3", Error);
  CHECK_THROWS_WITH_AS(parse_ranks("", "1").below(1, "--console"),
                       "--console lists rank 1, the run has rank 0 only", Error);
}

}  // namespace
}  // namespace fleetrun::launch::rank_set_test
