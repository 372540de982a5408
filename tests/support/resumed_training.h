// A training that goes on from a checkpoint in memory.
#pragma once
#include <optional>
#include <string>

#include "runtime/checkpoint/rank_states.h"
#include "runtime/checkpoint/snapshot.h"
#include "runtime/optim/merge_gradients.h"
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
  const Program& program = rank.trainer.whole_program();
  const int k_steps = static_cast<int>(steps_per_update(program));
  const MergedGradients merged = {.batches = steps % k_steps, .k_steps = k_steps, .scaling = ""};
  return take_snapshot({.steps = steps, .merged = merged}, program, rank.trainer.storage(),
                       rank.communicator);
}

// As resume_training does. `checkpoint` is rank 0's, null on the others. Returns what share_rank_states() has to say.
inline std::string resume_from(const Checkpoint* checkpoint, std::int64_t steps, TrainedRank& rank) {
  const Program& program = rank.trainer.whole_program();
  Storage& storage = rank.trainer.storage();
  if (checkpoint != nullptr) load_checkpoint(*checkpoint, program, storage);
  rank.trainer.share_parameters();
  share_owned(checkpoint, program, storage, rank.communicator);
  const int merged = share_merged_gradients(checkpoint, program, storage, rank.communicator);
  std::string note = share_rank_states(checkpoint, program, storage, rank.communicator);
  equalise_velocities(program, steps, storage, rank.communicator);
  rank.trainer.start_at(steps, merged);
  return note;
}

// `snapshot` is rank 0's.
inline std::string resume_from(const Snapshot& snapshot, TrainedRank& rank) {
  std::optional<Checkpoint> checkpoint;
  if (rank.communicator.rank() == 0) checkpoint = as_checkpoint(snapshot);
  return resume_from(checkpoint ? &*checkpoint : nullptr, snapshot.state.steps, rank);
}

}  // namespace fleetrun::runtime::test
