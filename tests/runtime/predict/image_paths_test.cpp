#include "runtime/predict/image_paths.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <sstream>

#include "base/system/file.h"
#include "runtime/data/expect_error.h"
#include "support/temporary_folder.h"

namespace fleetrun::runtime::image_paths_test {
namespace {

using Words = std::vector<std::string>;

TEST_CASE(
    "a folder stands for the images in it and below it, a dash for lines, and the order is that of the words") {
  const TemporaryFolder folder;
  for (const char* below : {"/b", "/.hidden"}) make_directories(folder.path() + below);
  for (const char* name :
       {"b/2.PNG", "b/1.jpeg", "a.jpg", "a.JFIF", "b/3.jpe", "notes.txt", ".a.png", ".hidden/c.png"})
    folder.write(name, "");
  std::istringstream lines("x.png\n\nno such file\n");
  const ImagePaths paths = image_paths({"z.gif", folder.path(), "-", "y"}, lines);
  CHECK(paths.images == Words{"z.gif", folder / "a.JFIF", folder / "a.jpg", folder / "b/1.jpeg",
                              folder / "b/2.PNG", folder / "b/3.jpe", "x.png", "no such file", "y"});
  CHECK(describe(paths.ignored) == "1 file ignored: " + folder / "notes.txt");
}

TEST_CASE("hunt 15: paths that NUL bytes separate are refused") {
  std::istringstream lines(std::string("a.png\0b.png\0", 12));
  check_error(ErrorKind::data, "a path on stdin contains a NUL byte, wanted one path per line",
              [&] { image_paths({"-"}, lines); });
}

TEST_CASE("a folder without images is an error that names it") {
  const TemporaryFolder folder;
  std::istringstream none;
  check_error(ErrorKind::data, "neither the folder " + folder.path() + " nor a folder below it has .jpg",
              [&] { image_paths({folder.path()}, none); });
}

TEST_CASE("folders that links lead to count, and links that go round in circles end") {
  const TemporaryFolder folder, elsewhere;
  elsewhere.write("2.jpg", "");
  folder.write("1.jpg", "");
  std::filesystem::create_directory_symlink(elsewhere.path(), folder / "linked");
  std::filesystem::create_directory_symlink(folder.path(), folder / "round");
  std::istringstream none;
  CHECK(image_paths({folder.path()}, none).images == Words{folder / "1.jpg", folder / "linked/2.jpg"});
}

TEST_CASE("one word that is neither a folder nor a dash is a single image") {
  const TemporaryFolder folder;
  CHECK(is_single_image({"a.jpg"}));
  CHECK_FALSE(is_single_image({"a.jpg", "b.jpg"}));
  CHECK_FALSE(is_single_image({"-"}));
  CHECK_FALSE(is_single_image({folder.path()}));
}

}  // namespace
}  // namespace fleetrun::runtime::image_paths_test
