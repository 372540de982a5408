// Tensors between rank 0, which reads and writes files, and the ranks. Every rank has the same, or one rank of a group keeps a tensor for
// all (graph/owner_of.h). `program` is that of all ranks (Trainer::whole_program). Every rank calls these functions alike.
#pragma once
#include <vector>

#include "comm/collective/communicator.h"
#include "runtime/checkpoint/weights.h"
#include "runtime/exec/storage.h"
#include "runtime/graph/program.h"

namespace fleetrun::runtime {

// Rank 0 gets the tensors, the others get none.
PlainTensors collect_tensors(const std::vector<ValueId>& ids, const Program& program, const Storage& storage,
                             comm::Communicator& all_ranks);

enum class Weights { trained, averaged };  // averaged: the moving averages, by the names of their parameters

// The same of the weights of the model, as save_weights() takes them.
PlainTensors collect_weights(const Program& program, const Storage& storage, comm::Communicator& all_ranks,
                             Weights which);

// From rank 0's file to the ranks that keep one of these tensors alone. `file` is null on the other ranks.
void hand_out_owned(const Safetensors* file, const std::vector<ValueId>& ids, const Program& program,
                    Storage& storage, comm::Communicator& all_ranks);

}  // namespace fleetrun::runtime
