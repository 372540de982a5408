// One way to use the compute threads: a range cut into equal pieces, one per thread of the caller's team.
#pragma once
#include <omp.h>

#include <algorithm>
#include <cstdint>

namespace fleetrun::runtime::cpu {

#ifdef __SANITIZE_THREAD__
constexpr bool kOneThread = true;  // gcc's OpenMP is not instrumented: its barriers look like races
#else
constexpr bool kOneThread = false;
#endif

// Elements per thread below which waking another thread (about 5 us) costs more than it saves.
constexpr std::int64_t kElementsPerThread = 8192;

// Calls body(begin, end) for pieces that cover [0, count), each of at least `grain`. A team of one never
// enters a parallel region: libgomp would allocate one each time. Pieces depend on count and team only.
template <typename Body>
void parallel_for(std::int64_t count, std::int64_t grain, Body&& body) {
  const std::int64_t wanted = count / std::max<std::int64_t>(grain, 1);
  const int pieces =
      kOneThread ? 1 : static_cast<int>(std::clamp<std::int64_t>(wanted, 1, omp_get_max_threads()));
  if (pieces == 1) {
    body(std::int64_t{0}, count);
    return;
  }
#pragma omp parallel num_threads(pieces)
  {
    const std::int64_t threads = omp_get_num_threads();
    const std::int64_t mine = omp_get_thread_num();
    body(count * mine / threads, count * (mine + 1) / threads);
  }
}

}  // namespace fleetrun::runtime::cpu
