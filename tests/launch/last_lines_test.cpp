#include "launch/last_lines.h"

#include <doctest/doctest.h>

#include "support/temporary_folder.h"

namespace fleetrun::launch::last_lines_test {
namespace {

using Words = std::vector<std::string>;

TEST_CASE("the last lines of a log are found, whatever is in it") {
  const TemporaryFolder folder;
  folder.write("log", "one\ntwo\n\nthree");
  CHECK(read_last_lines(folder / "log", 3) == Words{"two", "", "three"});
  CHECK(read_last_lines(folder / "log", 9) == Words{"one", "two", "", "three"});
  folder.write("log", "a\x1b[31mred\tx\r\n");
  CHECK(read_last_lines(folder / "log", 1) == Words{"a?[31mred\tx?"});
  folder.write("log", "\n");
  CHECK(read_last_lines(folder / "log", 5).empty());
  folder.write("log", "");
  CHECK(read_last_lines(folder / "log", 5).empty());
  CHECK(read_last_lines(folder / "missing", 5).empty());
  folder.write("log", std::string(100000, 'x') + "\nend\n");
  CHECK(read_last_lines(folder / "log", 1) == Words{"end"});
}

}  // namespace
}  // namespace fleetrun::launch::last_lines_test
