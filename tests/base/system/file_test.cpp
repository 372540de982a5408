#include "base/system/file.h"

#include <fcntl.h>
#include <unistd.h>

#include <doctest/doctest.h>

#include <filesystem>

#include "base/error/error.h"
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

UniqueFd open_to_read(const std::string& path) {
  return UniqueFd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
}

TEST_CASE("an open file gets another name, or its content does after the file was removed") {
  const TemporaryFolder folder;
  folder.write("first", "content");
  const UniqueFd file = open_to_read(folder / "first");
  link_or_copy(file, folder / "second");
  CHECK(std::filesystem::equivalent(folder / "first", folder / "second"));
  std::filesystem::remove(folder / "first");
  std::filesystem::remove(folder / "second");
  link_or_copy(file, folder / "third");
  CHECK(folder.read("third") == "content");
  folder.write("taken", "of the user");
  CHECK_THROWS_AS(link_or_copy(file, folder / "taken"), Error);
  CHECK(folder.read("taken") == "of the user");
}

TEST_CASE("files have the same content if every byte is the same") {
  const TemporaryFolder folder;
  std::string large(3'000'000, 'a');
  folder.write("one", large);
  folder.write("same", large);
  folder.write("longer", large + "a");
  large.back() = 'b';
  folder.write("other", large);
  const UniqueFd one = open_to_read(folder / "one");
  CHECK(have_same_content(one, one));
  CHECK(have_same_content(one, open_to_read(folder / "same")));
  CHECK_FALSE(have_same_content(one, open_to_read(folder / "longer")));
  CHECK_FALSE(have_same_content(one, open_to_read(folder / "other")));
  CHECK_FALSE(have_same_content(one, UniqueFd()));
}

}  // namespace
}  // namespace fleetrun::file_test
