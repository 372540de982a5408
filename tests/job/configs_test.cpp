// The job files that come with the project.
#include <doctest/doctest.h>

#include <filesystem>
#include <map>
#include <string>

#include "base/system/environment.h"
#include "job/checks/check_inputs.h"
#include "job/parse_job.h"

namespace fleetrun::job::configs_test {
namespace {

const std::filesystem::path kConfigs = std::filesystem::path(FLEETRUN_SOURCE_DIR) / "configs";

TEST_CASE("every file of configs/ is a good job that needs no note") {
  int count = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(kConfigs)) {
    if (entry.path().extension() != ".json") continue;
    CAPTURE(entry.path().string());
    CHECK(parse_job_file(entry.path().string(), {}).notes.empty());
    ++count;
  }
  CHECK(count >= 20);
}

TEST_CASE("no file of configs/ writes where another one does") {
  std::map<std::string, std::string> writers;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(kConfigs)) {
    if (entry.path().extension() != ".json") continue;
    const std::string folder = parse_job_file(entry.path().string(), {}).spec.output.dir;
    const auto [other, is_first] = writers.emplace(folder, entry.path().string());
    CHECK_MESSAGE(is_first, other->second, " and ", entry.path().string(), " write to ", folder);
  }
}

TEST_CASE("the quick start has its data set beside it") {
  CHECK_NOTHROW(check_inputs(parse_job_file((kConfigs / "quickstart.json").string(), {}).spec));
}

}  // namespace
}  // namespace fleetrun::job::configs_test
