#include "launch/logs/own_files.h"

#include <fcntl.h>

#include <filesystem>

#include <doctest/doctest.h>

#include "support/longest_file.h"
#include "support/temporary_folder.h"

namespace fleetrun::launch::own_files_test {
namespace {

TEST_CASE("a line of the list for which the disk has no room spoils no later line") {
  const TemporaryFolder folder;
  const UniqueFd open(::open(folder.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  OwnFiles files(open.get(), folder.path());
  files.begin("run", 1);
  const std::string before = folder.read(".fleetrun");
  {
    const LongestFile limit(before.size() + 10);
    CHECK_THROWS_WITH_AS(files.create("workerlog.0"), doctest::Contains("cannot become longer (ulimit -f)"),
                         Error);
  }
  CHECK_FALSE(folder.has("workerlog.0"));
  CHECK(folder.read(".fleetrun") == before);
  files.create("workerlog.1");
  const auto list = parse_file_list(folder.read(".fleetrun"));
  REQUIRE(list);
  REQUIRE(list->files.size() == 1);
  CHECK(list->files[0].name == "workerlog.1");
}

TEST_CASE("hunt 39: the list of a run that is killed as it begins still has the files of the run before") {
  const TemporaryFolder folder;
  const UniqueFd open(::open(folder.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  {
    OwnFiles killed(open.get(), folder.path());
    killed.begin("first", 1);
    killed.replace("report.json", "{}");  // the list has it by the name under which it was written
  }
  {
    OwnFiles killed(open.get(), folder.path());
    REQUIRE(killed.owns("report.json"));
    killed.begin("second", 1, {"report.json"});
  }
  CHECK(OwnFiles(open.get(), folder.path()).owns("report.json"));
}

TEST_CASE("a folder that somebody removes is made anew, and gets the next files") {
  const TemporaryFolder folder;
  const UniqueFd fd(::open(folder.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  OwnFiles files(fd.get(), folder.path());
  files.begin("run", 1);
  files.make_folder("attempt-0");
  files.create("attempt-0/a");
  std::filesystem::remove_all(folder / "attempt-0");
  files.make_folder("attempt-0");
  files.create("attempt-0/b");
  CHECK(folder.has("attempt-0/b"));
  files.remove("attempt-0/b");
  files.remove("attempt-0");
  CHECK_FALSE(files.look("attempt-0/b"));
  CHECK_FALSE(folder.has("attempt-0"));
}

}  // namespace
}  // namespace fleetrun::launch::own_files_test
