#include "launch/proc_files.h"

#include <doctest/doctest.h>

namespace fleetrun::launch::proc_files_test {
namespace {

TEST_CASE("what a process has read and written is the sum of both, cached or not") {
  CHECK(parse_process_io("rchar: 3000\nwchar: 400\nsyscr: 7\nsyscw: 9\nread_bytes: 4096\nwrite_bytes: 0\n") ==
        3400);
  CHECK(parse_process_io("") == 0);
}

}  // namespace
}  // namespace fleetrun::launch::proc_files_test
