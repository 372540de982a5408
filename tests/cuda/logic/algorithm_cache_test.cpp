#include "cuda/logic/algorithm_cache.h"

#include <doctest/doctest.h>

#include "base/error/error.h"
#include "support/temporary_folder.h"

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
  const AlgorithmSource source = {.search = [&] { return Algorithm{.workspace = ++searched}; }};
  CHECK(cache.get("3x3", source).workspace == 1);
  CHECK(cache.get("3x3", source).workspace == 1);
  CHECK(cache.get("1x1", source).workspace == 2);
  CHECK(cache.searches() == 2);
  CHECK(cache.hits() == 0);
}

TEST_CASE("a search that fails leaves nothing behind") {
  AlgorithmCache cache;
  CHECK_THROWS_AS(
      cache.get("3x3", {.search = []() -> Algorithm { throw Error(ErrorKind::config, "none fits"); }}),
      Error);
  CHECK(cache.searches() == 0);
  CHECK(cache.get("3x3", {.search = [] { return Algorithm{.workspace = 7}; }}).workspace == 7);
}

std::unique_ptr<const runtime::AlgorithmCache> file_in(const TemporaryFolder& folder) {
  return std::make_unique<runtime::AlgorithmCache>(folder.path(), "this GPU");
}

// A library that offers the algorithms "one" and "two". Its search finds `fastest`.
AlgorithmSource library_with(const std::string& fastest) {
  return {.search = [=] { return Algorithm{.name = fastest}; },
          .find = [](const std::string& name) -> std::optional<Algorithm> {
            if (name == "one" || name == "two") return Algorithm{.name = name};
            return std::nullopt;
          }};
}

TEST_CASE("what a search has found is not searched for again by the next run") {
  const TemporaryFolder folder;
  AlgorithmCache first, next;
  first.keep_in(file_in(folder));
  CHECK(first.get("3x3", library_with("one")).name == "one");
  next.keep_in(file_in(folder));
  CHECK(next.get("3x3", library_with("two")).name == "one");
  CHECK(next.get("1x1", library_with("two")).name == "two");
  CHECK(next.searches() == 1);
  CHECK(next.hits() == 1);
}

TEST_CASE("of two ranks that search at the same time, both take what the first one has found") {
  const TemporaryFolder folder;
  AlgorithmCache first, second;
  first.keep_in(file_in(folder));
  second.keep_in(file_in(folder));
  CHECK(first.get("3x3", library_with("one")).name == "one");
  CHECK(second.get("3x3", library_with("two")).name == "one");
  CHECK(second.searches() == 1);
}

TEST_CASE("an algorithm that the library no longer offers is searched for anew") {
  const TemporaryFolder folder;
  AlgorithmCache before, now;
  before.keep_in(file_in(folder));
  before.get("3x3", library_with("three"));
  now.keep_in(file_in(folder));
  CHECK(now.get("3x3", library_with("two")).name == "two");
}

TEST_CASE("a file that cannot be read or written keeps nobody from searching, and is named") {
  const TemporaryFolder folder;
  folder.write("file", "");
  AlgorithmCache cache;
  cache.keep_in(std::make_unique<runtime::AlgorithmCache>(folder / "file/below", "this GPU"));
  CHECK(cache.get("3x3", library_with("one")).name == "one");
  CHECK(cache.get("1x1", library_with("one")).name == "one");
  REQUIRE(cache.problems().size() == 1);
  CHECK(cache.problems()[0].find("file/below") != std::string::npos);
}

}  // namespace
}  // namespace fleetrun::cuda::algorithm_cache_test
