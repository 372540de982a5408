// A training's tensors between the ranks and a checkpoint. Ranks hold the same parameters and optimizer states, so that
// rank 0 speaks for all; running statistics are of each rank's own samples, and are kept of every rank.
#pragma once
#include "comm/communicator.h"
#include "runtime/checkpoint/checkpoint_folder.h"
#include "runtime/checkpoint/training_state.h"
#include "runtime/exec/storage.h"
#include "runtime/graph/program.h"

namespace fleetrun::runtime {

// Every rank calls it; the whole is rank 0's, the others get no files.
Snapshot take_snapshot(const TrainingState& state, const Program& program, const Storage& storage,
                       comm::Communicator& of_host);

// Rank 0's part of going on. Throws Error(data) that says how the checkpoint's tensors differ from the program's; then
// nothing was stored.
void load_checkpoint(const Checkpoint& checkpoint, const Program& program, Storage& storage);

// Every rank calls it, when rank 0's memory is everybody's; `checkpoint` is rank 0's, null on the others. A rank that the checkpoint does
// not know has rank 0's statistics.
void share_statistics(const Checkpoint* checkpoint, const Program& program, Storage& storage,
                      comm::Communicator& of_host);

}  // namespace fleetrun::runtime
