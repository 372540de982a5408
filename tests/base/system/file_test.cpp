#include "base/system/file.h"

#include <unistd.h>

#include <doctest/doctest.h>

#include "support/temporary_folder.h"

namespace fleetrun::file_test {
namespace {

TEST_CASE("a file beside the result that has the name of a temporary one stays") {
  const TemporaryFolder folder;
  const std::string taken = "result." + std::to_string(::getpid()) + ".0.tmp";
  folder.write(taken, "of the user");
  write_file_atomically(folder / "result", "first");
  replace_file(folder / "result", "second");
  CHECK(folder.read("result") == "second");
  CHECK(folder.read(taken) == "of the user");
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 2);
}

TEST_CASE("a link in the place of a result is replaced, not followed") {
  const TemporaryFolder folder;
  folder.write("precious", "of the user");
  std::filesystem::create_symlink("precious", folder / "result");
  write_file_atomically(folder / "result", "ours");
  CHECK(folder.read("precious") == "of the user");
  CHECK(folder.read("result") == "ours");
}

TEST_CASE("an open folder is found by its new name, and has none once it was removed") {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "old");
  const UniqueFd opened = remember_folder(folder / "old");
  CHECK(path_now(opened, folder / "old") == folder / "old");
  std::filesystem::rename(folder / "old", folder / "new");
  std::filesystem::create_directory(folder / "old");
  CHECK(path_now(opened, folder / "old") == folder / "new");
  std::filesystem::remove(folder / "new");
  CHECK_FALSE(path_now(opened, folder / "old"));
  CHECK_FALSE(path_now(remember_folder(folder / "new"), folder / "new"));
}

}  // namespace
}  // namespace fleetrun::file_test
