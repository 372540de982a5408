// The entries of the list in pipeline.cpp that see more than the training program: its model, or the device.
#pragma once
#include "runtime/compile/pipeline.h"

namespace fleetrun::runtime {

// The forward part computes in the narrow type where strategy.amp_configs wants it (cast_forward.h).
void cast_model(Compilation& compilation);

// The device normalises the images of both programs (feed_pixels.h).
void take_pixels(Compilation& compilation);

// The backward part, with loss scaling where strategy.amp asks for it, with gradient_merge and fp16_allreduce. From here on the gradients that optimizers read are
// ValueKind::gradient.
void append_gradients(Compilation& compilation);

// The clipping of gradients, the optimizer's update of each parameter, and the moving averages.
void append_updates(Compilation& compilation);

// The algorithm of each op that has a choice (search_algorithms.h).
void choose_algorithms(Compilation& compilation);

// The layout of each value, the same for parameters in both programs (propagate_layouts.h).
void place_in_layouts(Compilation& compilation);

// The evaluation program reads the moving averages in place of the parameters.
void evaluate_averages(Compilation& compilation);

// Lets the owners of parameters and averages send them to the ranks that use them (gather_parameters.h).
void gather_kept_values(Compilation& compilation);

// Cuts both programs into the stages of a pipeline (assign_stages.h).
void cut_stages(Compilation& compilation);

// What a device with streams starts as one kernel becomes one op (join_small_ops.h). Not in the evaluation program, which needs the copy of a
// parameter for one layer only.
void join_launches(Compilation& compilation);

// Keeps the whole program, and in both programs the stage of this rank (stage_program.h).
void keep_own_stage(Compilation& compilation);

// Keeps the whole program, and in the training program the updates that this rank owns (keep_own_updates.h).
void keep_own_part(Compilation& compilation);

}  // namespace fleetrun::runtime
