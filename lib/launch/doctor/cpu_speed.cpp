#include "launch/doctor/cpu_speed.h"

#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <string>

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

// Of all cores since the machine started. Documentation/filesystems/proc.rst
struct Ticks {
  double busy = 0, all = 0;
};

Ticks ticks_of_machine() {
  std::ifstream file("/proc/stat");
  std::string name;
  double user = 0, nice = 0, system = 0, idle = 0, disk = 0, irq = 0, softirq = 0, stolen = 0;
  file >> name >> user >> nice >> system >> idle >> disk >> irq >> softirq >> stolen;
  const double busy = user + nice + system + irq + softirq + stolen;
  return {.busy = busy, .all = busy + idle + disk};
}

// The share of all cores that was busy since then with other work than that of this thread, which used `own` cores.
double used_by_others(const Ticks& start, double own) {
  const Ticks end = ticks_of_machine();
  if (end.all <= start.all) return 0;
  const auto cores = static_cast<double>(::sysconf(_SC_NPROCESSORS_ONLN));
  return std::max(0.0, (end.busy - start.busy) / (end.all - start.all) - own / cores);
}

}  // namespace

CpuSpeed measure_cpu(Clock::duration time) {
  Matrix a, b, c{};
  a.fill(1e-3F);
  b.fill(1e-3F);
  const Ticks ticks = ticks_of_machine();
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
  const double share = (seconds_on_cpu() - on_cpu) / seconds;
  return {
      .gflops = rounds * kOperations / seconds / 1e9, .share = share, .others = used_by_others(ticks, share)};
}

}  // namespace fleetrun::launch
