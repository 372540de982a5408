// The score of an evaluation, summed over samples and ranks.
#pragma once
#include <array>
#include <cstdint>
#include <span>

#include "comm/collective/communicator.h"
#include "runtime/observe/score.h"

namespace fleetrun::runtime {

// Sums losses as integers: the sum does not depend on which rank scored which samples, and in which order. So an evaluation has the same
// result, to the bit, on any number of ranks.
class ScoreSums {
 public:
  // What the evaluation program fetches for a batch. `hits` has three numbers: top-1 hits, top-5 hits, samples.
  void add(std::span<const float> losses, const float* hits);

  // Of all ranks; then begins anew. Every rank calls it.
  Score reduce(comm::Communicator& communicator, std::int64_t classes);

 private:
  std::int64_t whole_ = 0, parts_ = 0;  // of the losses: whole numbers, and the rest in steps of 2^-36
  double large_ = 0;                    // those that are too large for an integer, or no numbers
  std::array<std::int64_t, 3> hits_{};
};

}  // namespace fleetrun::runtime
