#include "runtime/data/order/epoch_progress.h"

#include <algorithm>

namespace fleetrun::runtime {
namespace {

constexpr int kPieceSamples = 8;  // enough to make the lock cheap, few enough for threads to share a batch

}  // namespace

EpochProgress begin_epoch(const ShardSpec& shard, const EpochStart& start) {
  EpochProgress progress;
  progress.epoch = start.epoch;
  progress.batch = shard.batch_of_rank();
  progress.batches = batches_per_epoch(shard);
  progress.samples = plan_epoch(shard, start);
  progress.first_place = shard.shares().of(shard.rank).first + start.shift;
  progress.step_places = shard.shares().samples;
  progress.taken_batch = progress.released = progress.delivered = std::min(start.batch, progress.batches);
  return progress;
}

std::int32_t EpochProgress::sample_at(int of_batch, int place) const {
  return samples[static_cast<std::size_t>(of_batch) * static_cast<std::size_t>(batch) +
                 static_cast<std::size_t>(place)];
}

bool EpochProgress::piece_is_due(int most_batches) const {
  return taken_batch < batches && taken_batch < released + most_batches;
}

Piece EpochProgress::take_piece() {
  const Piece piece = {taken_batch, taken_place, std::min(taken_place + kPieceSamples, batch)};
  taken_place = piece.last;
  if (taken_place == batch) {
    ++taken_batch;
    taken_place = 0;
  }
  return piece;
}

}  // namespace fleetrun::runtime
