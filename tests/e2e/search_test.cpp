// The search for the algorithms of convolutions, as a user sees it.
#include <regex>

#include "e2e/launcher.h"

namespace fleetrun::search_test {
namespace {

constexpr const char* kJob = R"({
  "model": {"name": "resnet20"},
  "data": {"train": {"format": "synthetic", "samples": 16, "shape": [3, 12, 12], "classes": 4}, "batch_size": 4},
  "train": {"max_steps": 2, "threads": 1},
  "checkpoint": {"dir": "saved", "every_steps": 1}
})";

// What rank 0 said of a run of two ranks whose cache is there.
std::string log_of(const Launch& launch, const std::string& cache, const Words& overrides = {}) {
  ChildOptions options = launch.options();
  options.environment["FLEETRUN_CACHE_DIR"] = cache;
  launch.folder.write("job.json", kJob);
  Words words = {FLEETRUN_BINARY, "--nproc_per_node=2", "--device=cpu", "--dump_program=dump", "job.json"};
  words.insert(words.end(), overrides.begin(), overrides.end());
  const ChildResult result = run_child(words, options);
  REQUIRE_MESSAGE(result.code == 0, result.err);
  return launch.folder.read("log/workerlog.0");
}

TEST_CASE(
    "rank 0 says how many convolutions were searched: none in the next run, which goes on with the same algorithms") {
  const Launch launch;
  const std::string cache = launch.folder / "cache";
  const std::string first = log_of(launch, cache);
  std::smatch found;
  REQUIRE(std::regex_search(
      first, found,
      std::regex(
          R"(convolutions: #searched=(\d+), #cache hits=0, (\d+ of \1 problems by Winograd, \d+ by gemm)\n)")));
  const std::string first_program = launch.folder.read("dump/train.txt");
  CHECK(contains(first_program, "{algorithm=\""));
  const std::string next = log_of(launch, cache, {"train.max_steps=4"});
  CHECK(contains(next, "resuming from "));
  CHECK(
      contains(next, "convolutions: #searched=0, #cache hits=" + found.str(1) + ", " + found.str(2) + "\n"));
  CHECK(launch.folder.read("dump/train.txt") == first_program);
}

TEST_CASE("a cache that cannot be written is a warning; without the search nothing is said") {
  const Launch launch;
  launch.folder.write("file", "");
  const std::string log = log_of(launch, launch.folder / "file");
  CHECK(contains(log, "warning: the algorithms of convolutions: creating folder " + launch.folder / "file"));
  CHECK(contains(log, "convolutions: #searched="));
  const std::string off = log_of(launch, launch.folder / "file",
                                 {"strategy.cudnn_exhaustive_search=false", "checkpoint.resume=never"});
  CHECK_FALSE(contains(off, "convolutions"));
  CHECK_FALSE(contains(launch.folder.read("dump/train.txt"), "algorithm="));
}

}  // namespace
}  // namespace fleetrun::search_test
