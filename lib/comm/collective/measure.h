// How fast the ranks of a communicator sum: what `fleetrun bench all_reduce` runs on each rank.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>

#include "base/number/dtype.h"
#include "comm/collective/communicator.h"

namespace fleetrun::comm {

struct MeasureOptions {
  std::size_t bytes = 0;  // a multiple of the element's size
  DType dtype = DType::f32;
  int rounds = 0;                             // 0: enough for a third of a second, 20 to 2000
  std::function<void()> before_each = [] {};  // called before each round, as a sign of life
};

// Equal on every rank. Times in microseconds of one all_reduce, mean over the ranks.
struct Measured {
  std::size_t bytes = 0;
  std::size_t count = 0;
  int rounds = 0;
  double mean = 0, median = 0, p90 = 0, least = 0;
  std::int64_t wrong = 0;  // wrong elements in one more sum, over all ranks
};

// Sums in place, in memory from the communicator.
Measured measure_all_reduce(Communicator& comm, const MeasureOptions& options);

}  // namespace fleetrun::comm
