// What rank 0 leaves in output.dir: the weights, and beside them a trace and TensorBoard events.
#pragma once
#include <iosfwd>
#include <string>

#include "job/job_spec.h"
#include "runtime/exec/storage.h"
#include "runtime/graph/program.h"

namespace fleetrun::runtime {

// Creates output.dir. Reports what would stop the training from saving its results, before the hours of training.
// Throws Error(create).
void prepare_output(const job::OutputSpec& output);

// Writes the weights to model.safetensors and prints where they are. A file of that name that a user put there during the
// training stays: the weights then go to model.1.safetensors, or the next free number, with a warning.
// Throws Error as save_weights.
void save_result(const job::OutputSpec& output, const Program& program, const Storage& storage,
                 std::ostream& out);

}  // namespace fleetrun::runtime
