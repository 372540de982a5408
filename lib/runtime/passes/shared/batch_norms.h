// Batch norms in the eyes of the passes that fuse them with what follows.
#pragma once
#include "runtime/passes/shared/rewrite.h"

namespace fleetrun::runtime {

// The training batch_norm whose y is `value`, which one op alone reads; kNone when it is something else.
OpId trained_batch_norm(const Rewrite& rewrite, ValueId value);

// The batch_norm_grad that reads `dy` and belongs to the batch norm, fused or not, `forward`; kNone when there is none.
OpId gradient_of_batch_norm(const Rewrite& rewrite, const OpView& forward, ValueId dy);

// The op `type` with the arguments of the batch_norm, others besides, and another y.
Op fused_batch_norm(const Rewrite& rewrite, OpId norm, const std::string& type, const Arguments& besides,
                    ValueId y);

// The op `type` with the arguments of the batch_norm_grad, and others besides or instead.
Op fused_batch_norm_grad(const Rewrite& rewrite, OpId norm, const std::string& type, const Arguments& inputs,
                         const Arguments& outputs);

}  // namespace fleetrun::runtime
