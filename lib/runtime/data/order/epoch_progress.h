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
  int taken_batch = 0, taken_place = 0;  // the next piece starts here
  int released = 0;                      // batches whose memory may be used again
  int delivered = 0;                     // batches that were given out

  std::int32_t sample_at(int of_batch, int place) const;

  // There is a piece to take, with memory for `most_batches` that are not released.
  bool piece_is_due(int most_batches) const;
  Piece take_piece();

  // No piece is due any more; the samples stay, for the threads that still work on some.
  void give_up() { taken_batch = batches = 0; }
};

// An epoch about to begin at batch `start.batch`, or at its end where it has fewer batches.
EpochProgress begin_epoch(const ShardSpec& shard, const EpochStart& start);

}  // namespace fleetrun::runtime
