#include "launch/schedulers/read_values.h"

#include <doctest/doctest.h>

#include "support/temporary_folder.h"

namespace fleetrun::launch::read_values_test {
namespace {

int code_for(const std::string& path) {
  try {
    read_node_list(path);
  } catch (const Error& error) {
    return error.exit_code();
  }
  return 0;
}

TEST_CASE("a node file that is a folder is an error of the input, and one that is missing is missing") {
  const TemporaryFolder folder;
  folder.write("nodes", "n1\nn2\n");
  CHECK(read_node_list(folder / "nodes") == "n1\nn2\n");
  CHECK(code_for(folder.path()) == 2);
  CHECK(code_for(folder / "none") == 66);
}

}  // namespace
}  // namespace fleetrun::launch::read_values_test
