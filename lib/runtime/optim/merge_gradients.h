// strategy.gradient_merge: each rank adds up its gradients of k_steps batches; only every k_steps-th step sums them over the ranks and
// updates the parameters.
//
//   fc_grad ... -> w@GRAD        fc_grad ... -> w@GRAD.step
//                           =>   merge_gradient grad=w@GRAD.step merged=w.merged -> out=w@GRAD merged=w.merged {k_steps=4; scale=0.25}
// The pass update_every_k_steps lets what comes after it run in every k_steps-th step.
#pragma once
#include <vector>

#include "job/spec/job_spec.h"
#include "runtime/graph/builder.h"

namespace fleetrun::runtime {

// After the backward part: what travels between the ranks (ValueKind::gradient) is now the merged gradient.
void merge_gradients(Builder& builder, const job::GradientMergeSpec& merge);

// The states that hold the sums so far: different on each rank, unlike all other states.
std::vector<ValueId> merged_gradients_of(const Program& program);

// The number of steps from update to update; 1 without gradient_merge.
std::int64_t steps_per_update(const Program& program);

}  // namespace fleetrun::runtime
