// What rank 0 leaves in output.dir: the weights, and beside them a trace and TensorBoard events.
#pragma once
#include <iosfwd>
#include <string>

#include "base/system/unique_fd.h"
#include "job/job_spec.h"
#include "runtime/exec/storage.h"
#include "runtime/graph/program.h"

namespace fleetrun::runtime {

// Creates output.dir. Reports what would stop the training from saving its results, before the hours of training.
// The descriptor keeps other trainings out of the folder while it is open. Throws Error(create), also when another training
// uses the folder.
[[nodiscard]] UniqueFd prepare_output(const job::OutputSpec& output);

// Writes the weights to model.safetensors and prints where they are. A file of that name that a user put there during the
// training stays: the weights then go to model.1.safetensors, or the next free number, with a warning. A folder that was
// removed during the training is made again.
// Throws Error as save_weights.
void save_result(const job::OutputSpec& output, const Program& program, const Storage& storage,
                 std::ostream& out);

}  // namespace fleetrun::runtime
