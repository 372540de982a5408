#include "base/system/marked_file.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>

#include "base/error/error.h"
#include "support/temporary_folder.h"

namespace fleetrun::marked_file_test {
namespace {

std::string why_not(const std::string& path, const Mark& mark) {
  try {
    require_ours(path, mark, "a hint");
  } catch (const Error& error) {
    CHECK(error.exit_code() == 73);
    CHECK(error.hint() == "a hint");
    return error.message();
  }
  return "";
}

TEST_CASE("nothing, an empty file and one with the mark may be replaced, and nothing else") {
  const TemporaryFolder folder;
  const Mark mark = {.text = "ours"};
  const std::string path = folder / "file";
  CHECK(why_not(path, mark) == "");
  folder.write("file", "");
  CHECK(why_not(path, mark) == "");
  folder.write("file", "ours, and more");
  CHECK(why_not(path, mark) == "");
  CHECK(why_not(path, {.text = "and", .place = 6}) == "");
  for (const char* text : {"our", "theirs", " ours"}) {
    folder.write("file", text);
    CHECK(why_not(path, mark) == path + " is in the way: a file that fleetrun did not write");
  }
  folder.write("file", "ours");
  std::filesystem::create_symlink("file", folder / "link");
  CHECK(why_not(folder / "link", mark) == folder / "link is in the way: a link that fleetrun did not write");
  std::filesystem::create_symlink("nowhere", folder / "dangling");
  CHECK(why_not(folder / "dangling", mark) != "");
  CHECK(why_not(folder.path(), mark) ==
        folder.path() + " is in the way: a folder that fleetrun did not write");
}

TEST_CASE("a file without a mark is known by its content, which is read only for a regular file") {
  const TemporaryFolder folder;
  bool asked = false;
  const auto is_ours = [&](int fd) {
    asked = true;
    char first = 0;
    return ::pread(fd, &first, 1, 0) == 1 && first == 'o';
  };
  folder.write("file", "ours");
  require_ours(folder / "file", is_ours, "");
  CHECK(asked);
  folder.write("file", "theirs");
  CHECK_THROWS_AS(require_ours(folder / "file", is_ours, ""), Error);
  asked = false;
  folder.write("empty", "");
  require_ours(folder / "empty", is_ours, "");
  std::filesystem::create_symlink("file", folder / "link");
  CHECK_THROWS_AS(require_ours(folder / "link", is_ours, ""), Error);
  CHECK_FALSE(asked);
}

}  // namespace
}  // namespace fleetrun::marked_file_test
