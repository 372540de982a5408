#include "launch/doctor/cpu_speed.h"

#include <time.h>

#include <array>

namespace fleetrun::launch {
namespace {

constexpr std::size_t kSide = 64;  // three matrices of floats fit into the first-level cache
using Matrix = std::array<float, kSide * kSide>;

void multiply(const Matrix& a, const Matrix& b, Matrix& c) {
  for (std::size_t i = 0; i < kSide; ++i)
    for (std::size_t k = 0; k < kSide; ++k) {
      const float factor = a[i * kSide + k];
      for (std::size_t j = 0; j < kSide; ++j) c[i * kSide + j] += factor * b[k * kSide + j];
    }
}

double seconds_on_cpu() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

}  // namespace

CpuSpeed measure_cpu(Clock::duration time) {
  Matrix a, b, c{};
  a.fill(1e-3F);
  b.fill(1e-3F);
  const TimePoint start = Clock::now();
  const double on_cpu = seconds_on_cpu();
  double rounds = 0;
  while (Clock::now() - start < time) {
    multiply(a, b, c);
    a[0] = c[0] > 1 ? 0 : 1e-3F;  // the compiler cannot leave the work out
    ++rounds;
  }
  const double seconds = in_seconds(Clock::now() - start);
  constexpr double kOperations = 2.0 * kSide * kSide * kSide;
  return {.gflops = rounds * kOperations / seconds / 1e9, .share = (seconds_on_cpu() - on_cpu) / seconds};
}

}  // namespace fleetrun::launch
