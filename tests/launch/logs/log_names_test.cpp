#include "launch/logs/log_names.h"

#include <filesystem>

#include <doctest/doctest.h>

#include "support/temporary_folder.h"

namespace fleetrun::launch::log_names_test {
namespace {

TEST_CASE("a run has places of its own in its log folder, however the path to them is written") {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "log");
  std::filesystem::create_directory_symlink("log", folder / "link");
  for (const char* place :
       {"log/report.json", "log/workerlog.0", "log/workerlog.12.err", "log/endpoints.log", "log/train.json",
        "log/stacks.1", "log/attempt-0/metrics.prom", "log/../log/./report.json", "link/report.json"}) {
    CAPTURE(place);
    CHECK(is_place_of_a_run(folder / "log", folder / place));
    CHECK(is_place_of_a_run(folder / "link", folder / place));
  }
  CHECK(is_place_of_a_run("log/", "./log/report.json"));  // which is not there yet
  CHECK(is_place_of_a_run(".", "report.json"));
}

TEST_CASE("beside them, everything in the log folder and elsewhere is free") {
  const TemporaryFolder folder;
  for (const char* place : {"log/metrics.prom", "report.json", "other/report.json", "log.d/report.json",
                            "log/mine/report.json", "log/workerlog.first", "log"})
    CHECK_FALSE(is_place_of_a_run(folder / "log", folder / place));
  CHECK_FALSE(is_place_of_a_run(folder / "log", ""));
}

}  // namespace
}  // namespace fleetrun::launch::log_names_test
