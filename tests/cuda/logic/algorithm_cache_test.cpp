#include "cuda/logic/algorithm_cache.h"

#include <doctest/doctest.h>

#include "base/error/error.h"

namespace fleetrun::cuda::algorithm_cache_test {
namespace {

const std::vector<Candidate> kCandidates = {
    {.algorithm = {.workspace = 1}, .usable = false},
    {.algorithm = {.workspace = 3000}, .usable = true},
    {.algorithm = {.workspace = 200}, .usable = true},
    {.algorithm = {.workspace = 100}, .usable = true},
};

TEST_CASE("the first algorithm that is usable and fits into the workspace is taken") {
  CHECK(first_within(kCandidates, 4000)->workspace == 3000);
  CHECK(first_within(kCandidates, 3000)->workspace == 3000);
  CHECK(first_within(kCandidates, 2999)->workspace == 200);
  CHECK(first_within(kCandidates, 100)->workspace == 100);
  CHECK_FALSE(first_within(kCandidates, 99));
}

TEST_CASE("the least workspace is that of a usable algorithm") {
  CHECK(least_workspace(kCandidates) == 100);
  CHECK_FALSE(least_workspace({kCandidates[0]}));
}

TEST_CASE("a problem is searched for once, another one again") {
  AlgorithmCache cache;
  std::size_t searched = 0;
  const auto search = [&] { return Algorithm{.workspace = ++searched}; };
  CHECK(cache.get("3x3", search).workspace == 1);
  CHECK(cache.get("3x3", search).workspace == 1);
  CHECK(cache.get("1x1", search).workspace == 2);
  CHECK(cache.searches() == 2);
  CHECK(cache.hits() == 1);
}

TEST_CASE("a search that fails leaves nothing behind") {
  AlgorithmCache cache;
  CHECK_THROWS_AS(cache.get("3x3", []() -> Algorithm { throw Error(ErrorKind::config, "none fits"); }),
                  Error);
  CHECK(cache.searches() == 0);
  CHECK(cache.get("3x3", [] { return Algorithm{.workspace = 7}; }).workspace == 7);
}

}  // namespace
}  // namespace fleetrun::cuda::algorithm_cache_test
