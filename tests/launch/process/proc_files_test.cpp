#include "launch/process/proc_files.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <thread>

#include <doctest/doctest.h>

namespace fleetrun::launch::proc_files_test {
namespace {

TEST_CASE("what a process has read and written is known of both, cached or not") {
  const ProcessIo io =
      parse_process_io("rchar: 3000\nwchar: 400\nsyscr: 7\nsyscw: 9\nread_bytes: 2048\nwrite_bytes: 0\n");
  CHECK(io.read == 3000);
  CHECK(io.written == 400);
  CHECK(parse_process_io("rchar: 3000\nwchar: 400\nread_bytes: 8192\n").read == 8192);  // of a mapped file
  CHECK(parse_process_io("").read == 0);
  CHECK(parse_process_io("").written == 0);
}

TEST_CASE("a process has a number in each namespace that it is in, that of /proc first") {
  CHECK(numbers_in("Name:\tsh\nNStgid:\t7\nNSpid:\t7\nNSpgid:\t7\n") == std::vector<pid_t>{7});
  CHECK(numbers_in("Name:\tsh\nNSpid:\t4711\t23\t1\n") == std::vector<pid_t>{4711, 23, 1});
  CHECK(numbers_in("").empty());
}

TEST_CASE("a variable is read from the environment of a process, and not from one with a longer name") {
  ::setenv("FLEETRUN_TEST_LATER", "set after the start", 1);
  CHECK(read_variable(::getpid(), "FLEETRUN_TEST_LATER").empty());
  CHECK(read_variable(::getpid(), "PATH") == std::getenv("PATH"));
  CHECK(read_variable(::getpid(), "ATH").empty());
  CHECK(read_variable(0, "PATH").empty());
  ::unsetenv("FLEETRUN_TEST_LATER");
}

TEST_CASE("our own process is found under its number") {
  CHECK(shows_own_processes());
  CHECK(process_path(::getpid(), "stat") == "/proc/" + std::to_string(::getpid()) + "/stat");
  REQUIRE(read_process_stat(::getpid()));
  CHECK(read_process_stat(::getpid())->parent == ::getppid());
  CHECK(list_process_tree(::getpid()).front() == ::getpid());
}

TEST_CASE("a process's own processor time is separate from its children's") {
  const auto stat = parse_process_stat("7 (a) b) S 1 7 7 0 -1 0 0 0 0 0 100 20 3000 400 20 0 1 0 12345 99");
  REQUIRE(stat);
  CHECK(stat->cpu_time == std::chrono::milliseconds(35200));
  CHECK(stat->own_cpu_time == std::chrono::milliseconds(1200));
  CHECK(stat->started == std::chrono::milliseconds(123450));
}

TEST_CASE("children of any thread belong to the tree") {
  int ends[2] = {-1, -1};
  REQUIRE(::pipe(ends) == 0);
  std::promise<pid_t> started;
  std::thread parent([&] {
    const pid_t child = ::fork();
    char nothing = 0;
    if (child == 0) ::_exit(::close(ends[1]) == 0 && ::read(ends[0], &nothing, 1) == 0 ? 0 : 1);
    started.set_value(child);
    ::waitpid(child, nullptr, 0);
  });
  const pid_t child = started.get_future().get();
  const std::vector<pid_t> tree = list_process_tree(::getpid());
  CHECK(std::find(tree.begin(), tree.end(), child) != tree.end());
  ::close(ends[1]);
  parent.join();
  ::close(ends[0]);
}

using namespace std::chrono_literals;

struct stat written(std::chrono::seconds ago) {
  const auto time = (std::chrono::system_clock::now() - ago).time_since_epoch();
  struct stat file {};
  file.st_mtim.tv_sec = std::chrono::duration_cast<std::chrono::seconds>(time).count();
  return file;
}

TEST_CASE("how long a file was not written to does not depend on a time of day that was set meanwhile") {
  const Moment start = {std::chrono::system_clock::now() - 100s, Clock::now() - 100s};
  CHECK(seconds_since_write(written(10s), start) == doctest::Approx(10).epsilon(0.2));
  CHECK(seconds_since_write(written(-3600s), start) == 0);
  CHECK(seconds_since_write(written(3600s), start) == doctest::Approx(100).epsilon(0.01));
}

}  // namespace
}  // namespace fleetrun::launch::proc_files_test
