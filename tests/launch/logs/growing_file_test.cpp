#include "launch/logs/growing_file.h"

#include <doctest/doctest.h>

#include "support/temporary_folder.h"

namespace fleetrun::launch::growing_file_test {
namespace {

TEST_CASE("what is added is read once") {
  const TemporaryFolder folder;
  folder.write("log", "one\n");
  GrowingFile file(folder / "log");
  CHECK(file.read(100) == "one\n");
  CHECK(file.read(100).empty());
  folder.write("log", "one\ntwo\n");
  CHECK_FALSE(file.begins_anew());
  CHECK(file.read(2) == "tw");
  CHECK(file.read(100) == "o\n");
}

TEST_CASE("a file that somebody empties begins anew") {
  const TemporaryFolder folder;
  folder.write("log", "a long first line\n");
  GrowingFile file(folder / "log");
  file.read(100);
  folder.write("log", "new\n");
  CHECK(file.begins_anew());
  CHECK(file.read(100) == "new\n");
  CHECK_FALSE(file.begins_anew());
}

TEST_CASE("a file that grows past its old length after it was emptied begins anew, too") {
  const TemporaryFolder folder;
  folder.write("log", "step 1\nstep 2\n");
  GrowingFile file(folder / "log");
  file.read(100);
  folder.write("log", "step 3\nstep 4\nstep 5\n");
  CHECK(file.begins_anew());
  CHECK(file.read(100) == "step 3\nstep 4\nstep 5\n");
  CHECK_FALSE(file.begins_anew());
}

TEST_CASE("hunt: a file does not begin anew when somebody overwrites its last bytes") {
  const TemporaryFolder folder;
  const std::string start = "of the start\n" + std::string(300, '.');
  folder.write("log", start + "step 1\nstep 2\n");
  GrowingFile file(folder / "log");
  file.read(1000);
  folder.write("log", start + "step 1\nSTEP 2\nstep 3\n");
  CHECK_FALSE(file.begins_anew());
  CHECK(file.read(1000) == "step 3\n");
}

TEST_CASE("of a flood only the end is read") {
  const TemporaryFolder folder;
  folder.write("log", "0123456789");
  GrowingFile file(folder / "log");
  CHECK(file.read_end(3) == "789");
  CHECK(file.read_end(3).empty());
}

TEST_CASE("a file that is not there is empty") {
  GrowingFile file(std::string("/no/such/file"));
  CHECK_FALSE(file.is_open());
  CHECK_FALSE(file.begins_anew());
  CHECK(file.read(10).empty());
  CHECK(file.read_end(10).empty());
}

}  // namespace
}  // namespace fleetrun::launch::growing_file_test
