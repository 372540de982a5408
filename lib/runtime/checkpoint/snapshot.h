// A training's tensors between the ranks and a checkpoint. Ranks hold the same parameters, so that rank 0 speaks for all; the
// running statistics of the model are rank 0's, too, those of other ranks have no effect (Trainer::begin_evaluation).
// Merged gradients are each rank's own, and are in the checkpoint by rank. So is what differs between ranks (rank_states.h).
// Optimizer states and parameters are the same on all ranks, or each is one rank's alone (reduce_strategy Reduce, sharding, a stage of
// a pipeline): a checkpoint has all of them either way. `program` is that of all ranks (Trainer::whole_program).
#pragma once
#include <string>

#include "comm/collective/communicator.h"
#include "runtime/checkpoint/checkpoint_folder.h"
#include "runtime/checkpoint/training_state.h"
#include "runtime/checkpoint/weights.h"
#include "runtime/exec/storage.h"
#include "runtime/graph/program.h"

namespace fleetrun::runtime {

// Every rank calls it; the whole is rank 0's, the others get no files.
Snapshot take_snapshot(const TrainingState& state, const Program& program, const Storage& storage,
                       comm::Communicator& all_ranks);

// Rank 0's part of going on; of the tensors that one rank owns it stores its own. A training may go on with a loss scale or
// without one, whatever the checkpoint has: what that means is returned in words, "" when nothing is to be said. Throws
// Error(data) that says how the checkpoint's other tensors differ from the program's; then nothing was stored.
std::string load_checkpoint(const Checkpoint& checkpoint, const Program& program, Storage& storage);

// Tensors that one rank owns, from the checkpoint to their owners. Every rank calls it; `checkpoint` is rank 0's, null on
// the others.
void share_owned(const Checkpoint* checkpoint, const Program& program, Storage& storage,
                 comm::Communicator& all_ranks);

// Removes the gradients of strategy.gradient_merge from a checkpoint if the training `now` cannot add to them (difference_of_merging).
// Returns a line about it, "" if nothing was removed.
std::string leave_out_merged_gradients(Checkpoint& checkpoint, const TrainingState& now,
                                       const Program& program);

// The gradients that each rank has merged since the last update (strategy.gradient_merge), from the checkpoint to their ranks. Every
// rank calls it; `checkpoint` is rank 0's, null on the others. Returns from how many batches they are.
int share_merged_gradients(const Checkpoint* checkpoint, const Program& program, Storage& storage,
                           comm::Communicator& all_ranks);

}  // namespace fleetrun::runtime
