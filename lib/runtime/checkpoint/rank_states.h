// Tensors that differ between the ranks of a training, as strategy.localsgd and strategy.dgc make them: a checkpoint has those of every rank, beside
// their mean, with which another number of ranks goes on.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "comm/collective/communicator.h"
#include "runtime/checkpoint/checkpoint_folder.h"
#include "runtime/checkpoint/weights.h"
#include "runtime/exec/storage.h"
#include "runtime/graph/program.h"

namespace fleetrun::runtime {

// Every rank calls it: the mean over the ranks, bit for bit the same on every rank. What all ranks have alike, such as a frozen weight,
// keeps its bits.
void average_over_ranks(std::vector<float>& values, comm::Communicator& all_ranks);

// Every rank calls it; rank 0 gets the content of kRankStatesFile, which is empty where all ranks have the same tensors.
PlainTensors gather_rank_states(const Program& program, const Storage& storage,
                                comm::Communicator& all_ranks);

// Every rank calls it; rank 0 gets the means of the tensors that differ between ranks.
PlainTensors gather_means(const Program& program, const Storage& storage, comm::Communicator& all_ranks);

// From a checkpoint to each rank its own, if as many ranks saved it; else all ranks keep the means that load_checkpoint() gave them.
// Every rank calls it; `checkpoint` is rank 0's, null on the others. Returns what is to be said about it, on rank 0.
std::string share_rank_states(const Checkpoint* checkpoint, const Program& program, Storage& storage,
                              comm::Communicator& all_ranks);

// Before the ramp-up of dgc the ranks need equal velocities. A training that goes back to such a step, as another batch size or
// another rampup_begin_step can make it, goes on with their mean. Every rank calls it.
void equalise_velocities(const Program& program, std::int64_t steps, Storage& storage,
                         comm::Communicator& all_ranks);

}  // namespace fleetrun::runtime
