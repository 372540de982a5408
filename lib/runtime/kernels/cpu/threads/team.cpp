#include "runtime/kernels/cpu/threads/team.h"

#include <omp.h>
#include <pthread.h>

#include <algorithm>
#include <cstddef>
#include <limits>

#include <fmt/format.h>

#include "base/error/error.h"
#include "runtime/kernels/cpu/threads/parallel_for.h"

namespace fleetrun::runtime::cpu {
namespace {

constexpr std::size_t kKibibyte = 1024;
// oneDNN 2.7 crashes with 32 KiB (its code generators run on these threads, too).
constexpr std::size_t kLeastStack = 128 * kKibibyte;

std::size_t stack_of_this_thread() {
  pthread_attr_t attributes;
  if (::pthread_getattr_np(::pthread_self(), &attributes) != 0) return kLeastStack;  // not known: not refused
  std::size_t bytes = 0;
  void* lowest = nullptr;
  ::pthread_attr_getstack(&attributes, &lowest, &bytes);
  ::pthread_attr_destroy(&attributes);
  return bytes;
}

}  // namespace

void set_team(int threads) {
  omp_set_dynamic(0);
  omp_set_max_active_levels(1);
  omp_set_num_threads(threads);
}

int largest_team(int wanted) {
  set_team(wanted);
  if (wanted == 1 || kOneThread) return wanted;
  int threads = 1;
  std::size_t stack = std::numeric_limits<std::size_t>::max();
#pragma omp parallel reduction(min : stack)
  {
    stack = stack_of_this_thread();
    if (omp_get_thread_num() == 0) threads = omp_get_num_threads();
  }
  if (stack < kLeastStack)
    throw Error(ErrorKind::config,
                fmt::format("compute threads have stacks of {} KiB, wanted at least {} KiB",
                            stack / kKibibyte, kLeastStack / kKibibyte),
                "unset OMP_STACKSIZE and GOMP_STACKSIZE, and raise ulimit -s");
  return threads;
}

}  // namespace fleetrun::runtime::cpu
