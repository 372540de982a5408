// How much longer than promised a program may take here.
#pragma once
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>

namespace fleetrun::testing {

// In this build: of what a test calls, or of the programs that it starts.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(FLEETRUN_PROGRAMS_ARE_SANITIZED)
constexpr double kSlowdown = 5;
#else
constexpr double kSlowdown = 1;
#endif

// How many programs share a core of this machine now: what is promised holds for a core of one's own.
inline double programs_per_core() {
  std::ifstream file("/proc/loadavg");
  double last_minute = 0, skipped = 0,
         running = 0;  // "1.93 2.07 2.04 3/94 26939": the fourth is those that run now
  file >> last_minute >> skipped >> skipped >> running;
  const auto cores = static_cast<double>(::sysconf(_SC_NPROCESSORS_ONLN));
  return std::max({1.0, last_minute / cores, running / cores});
}

// In this build on this machine, now. FLEETRUN_TEST_SLOWNESS of the environment is for a slow machine.
inline double slowness() {
  const char* of_machine =
      std::getenv("FLEETRUN_TEST_SLOWNESS");  // NOLINT(concurrency-mt-unsafe): nobody sets it
  return kSlowdown * programs_per_core() *
         (of_machine == nullptr ? 1 : std::atof(of_machine));  // NOLINT(cert-err34-c): 0 fails each test
}

}  // namespace fleetrun::testing
