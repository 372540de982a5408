#include "runtime/data/order/epoch_progress.h"

#include <doctest/doctest.h>

namespace fleetrun::runtime::epoch_progress_test {
namespace {

const ShardSpec kShard = {.samples = 60, .batch = 20, .shuffle = false};

void check_piece(const Piece& piece, int batch, int first, int last) {
  CHECK(piece.batch == batch);
  CHECK(piece.first == first);
  CHECK(piece.last == last);
}

TEST_CASE("pieces of eight samples cover the batches of an epoch in order") {
  EpochProgress progress = begin_epoch(kShard, {3, 1});
  CHECK(progress.epoch == 3);
  CHECK(progress.batches == 3);
  for (int batch = 1; batch < 3; ++batch) {
    check_piece(progress.take_piece(), batch, 0, 8);
    check_piece(progress.take_piece(), batch, 8, 16);
    CHECK(progress.piece_is_due(3));
    check_piece(progress.take_piece(), batch, 16, 20);
  }
  CHECK_FALSE(progress.piece_is_due(3));
  CHECK(progress.sample_at(2, 5) == 45);
}

TEST_CASE("a piece is due while there is memory for its batch") {
  EpochProgress progress = begin_epoch(kShard, {0, 0});
  for (int i = 0; i < 3; ++i) progress.take_piece();
  CHECK_FALSE(progress.piece_is_due(1));
  CHECK(progress.piece_is_due(2));
  progress.released = 1;
  CHECK(progress.piece_is_due(1));
}

TEST_CASE("no piece is due before an epoch, after it was given up, or past its last batch") {
  CHECK_FALSE(EpochProgress().piece_is_due(5));
  EpochProgress progress = begin_epoch(kShard, {0, 0});
  progress.give_up();
  CHECK_FALSE(progress.piece_is_due(5));
  CHECK(progress.sample_at(0, 4) == 4);
  CHECK_FALSE(begin_epoch(kShard, {0, 7}).piece_is_due(5));
}

}  // namespace
}  // namespace fleetrun::runtime::epoch_progress_test
