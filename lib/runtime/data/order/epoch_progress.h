// The samples of one epoch, and how far the loader is with them.
#pragma once
#include <cstdint>
#include <vector>

#include "runtime/data/order/sampler.h"

namespace fleetrun::runtime {

// Samples first to last of a batch: what one thread takes on at once.
struct Piece {
  int batch = 0, first = 0, last = 0;
};

struct EpochProgress {
  int epoch = 0;
  int batch = 1;                         // samples
  int batches = 0;                       // 0: no epoch has begun
  std::vector<std::int32_t> samples;     // this rank's: batches * batch
  std::int64_t first_place = 0;          // of this rank in the epoch's order
  std::int64_t step_places = 1;          // of all ranks in each batch
  int taken_batch = 0, taken_place = 0;  // the next piece starts here
  int released = 0;                      // batches whose memory may be used again
  int delivered = 0;                     // batches that were given out

  std::int32_t sample_at(int of_batch, int place) const;
  std::int64_t place_in_epoch(int of_batch, int place) const {  // the same for any number of ranks
    return first_place + of_batch * step_places + place;
  }

  // There is a piece to take, with memory for `most_batches` that are not released.
  bool piece_is_due(int most_batches) const;
  Piece take_piece();

  // No piece is due any more; the samples stay, for the threads that still work on some.
  void give_up() { taken_batch = batches = 0; }
};

// An epoch about to begin at batch `start.batch`, or at its end where it has fewer batches.
EpochProgress begin_epoch(const ShardSpec& shard, const EpochStart& start);

}  // namespace fleetrun::runtime
