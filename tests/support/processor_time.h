// What a computation costs, however many programs share the cores.
#pragma once
#include <time.h>

namespace fleetrun::testing {

// Seconds of processor time that `work` takes in this thread.
template <typename Work>
double processor_seconds_of(const Work& work) {
  const auto now = [] {
    timespec time{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
  };
  const double start = now();
  work();
  return now() - start;
}

}  // namespace fleetrun::testing
