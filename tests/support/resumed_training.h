// A training that goes on from a checkpoint in memory.
#pragma once
#include <optional>

#include "runtime/checkpoint/rank_states.h"
#include "runtime/checkpoint/snapshot.h"
#include "support/small_training.h"

namespace fleetrun::runtime::test {

// What reading the files of a snapshot would give.
inline Checkpoint as_checkpoint(const Snapshot& snapshot) {
  Checkpoint checkpoint = {.path = "memory", .state = snapshot.state, .files = {}};
  for (const auto& [name, tensors] : snapshot.files)
    checkpoint.files.emplace(name, parse_safetensors(format_tensors(tensors), name));
  return checkpoint;
}

inline Snapshot snapshot_after(TrainedRank& rank, int steps) {
  return take_snapshot({.steps = steps}, rank.trainer.whole_program(), rank.trainer.storage(),
                       rank.communicator);
}

// As resume_training does. `snapshot` is rank 0's.
inline void resume_from(const Snapshot& snapshot, TrainedRank& rank) {
  const Program& program = rank.trainer.whole_program();
  Storage& storage = rank.trainer.storage();
  std::optional<Checkpoint> checkpoint;
  if (rank.communicator.rank() == 0) checkpoint = as_checkpoint(snapshot);
  const Checkpoint* const own = checkpoint ? &*checkpoint : nullptr;
  if (own != nullptr) load_checkpoint(*own, program, storage);
  rank.trainer.share_parameters();
  share_owned(own, program, storage, rank.communicator);
  share_merged_gradients(own, program, storage, rank.communicator);
  share_rank_states(own, program, storage, rank.communicator);
  equalise_velocities(program, snapshot.state.steps, storage, rank.communicator);
  rank.trainer.start_at(snapshot.state.steps);
}

}  // namespace fleetrun::runtime::test
