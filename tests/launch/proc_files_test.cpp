#include "launch/proc_files.h"

#include <unistd.h>

#include <doctest/doctest.h>

namespace fleetrun::launch::proc_files_test {
namespace {

TEST_CASE("what a process has read and written is the sum of both, cached or not") {
  CHECK(parse_process_io("rchar: 3000\nwchar: 400\nsyscr: 7\nsyscw: 9\nread_bytes: 4096\nwrite_bytes: 0\n") ==
        3400);
  CHECK(parse_process_io("") == 0);
}

TEST_CASE("a process has a number in each namespace that it is in, that of /proc first") {
  CHECK(numbers_in("Name:\tsh\nNStgid:\t7\nNSpid:\t7\nNSpgid:\t7\n") == std::vector<pid_t>{7});
  CHECK(numbers_in("Name:\tsh\nNSpid:\t4711\t23\t1\n") == std::vector<pid_t>{4711, 23, 1});
  CHECK(numbers_in("").empty());
}

TEST_CASE("our own process is found under its number") {
  CHECK(shows_own_processes());
  CHECK(process_path(::getpid(), "stat") == "/proc/" + std::to_string(::getpid()) + "/stat");
  REQUIRE(read_process_stat(::getpid()));
  CHECK(read_process_stat(::getpid())->parent == ::getppid());
  CHECK(list_process_tree(::getpid()).front() == ::getpid());
}

}  // namespace
}  // namespace fleetrun::launch::proc_files_test
