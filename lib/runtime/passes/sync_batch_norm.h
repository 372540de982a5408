#pragma once
#include "runtime/passes/pass_context.h"

namespace fleetrun::runtime {

// Batch normalisation in training by the statistics of all ranks. Its sums go by communicator 0, like those of the gradients
// in the order of the program, which is that of every rank.
//
//   batch_norm x ... mean=m -> y       sync_batch_norm_sums x mean=m -> bn.sums
//                                 =>   all_reduce x=bn.sums
//                                      sync_batch_norm x ... mean=m sums=bn.sums -> y
//
//   batch_norm_grad x dy ...           sync_batch_norm_grad_sums x dy ... -> bn@GRAD.sums dscale dbias
//     -> dx dscale dbias          =>   all_reduce x=bn@GRAD.sums
//                                      sync_batch_norm_grad x dy ... sums=bn@GRAD.sums -> dx
// Before the fusions: what has been taken apart no longer matches them. A device without these ops: told, nothing is done.
void sync_batch_norm(Program& program, const PassContext& context);

}  // namespace fleetrun::runtime
