// Feeds a program with the bytes of images in place of numbers: the device normalises them. A cast of the numbers that
// all ops read becomes part of it.
//
//   cast x=image -> image.cast_f16           crop_mirror_normalize x=pixels view=view -> image (f16)
//   conv2d x=image.cast_f16 w=w -> y    =>   conv2d x=image w=w -> y
//
// `pixels` and `view` become feeds. `image` is no longer a feed.
#pragma once
#include "job/spec/job_spec.h"
#include "runtime/graph/op_def.h"

namespace fleetrun::runtime {

// Call it before the backward part is appended. `set` has the mean and the standard deviation. Throws Error(config) as
// make_normalisation().
void feed_pixels(Program& program, const OpTable& ops, const job::DataSetSpec& set);

// Does the same for the program of evaluations, with the data set on which the job evaluates. If the job has no such set, it
// takes the data set of the training: the program exists in any case.
void feed_evaluation_pixels(Program& program, const OpTable& ops, const job::DataSpec& data);

}  // namespace fleetrun::runtime
