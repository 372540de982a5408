#include "launch/proc_files.h"

#include <sys/stat.h>

#include <chrono>

#include <doctest/doctest.h>

namespace fleetrun::launch::proc_files_test {
namespace {

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
