// checkpoint.keep_best: best.safetensors in output.dir has the weights of the best epoch, with the score in the metadata of the file. Every
// checkpoint has the same file, so a training that goes on from there has the best weights that it had there, whatever has happened in
// output.dir since.
#pragma once
#include <iosfwd>
#include <optional>
#include <string>

#include "base/system/unique_fd.h"
#include "job/spec/job_spec.h"
#include "runtime/checkpoint/weights.h"
#include "runtime/observe/scored_epoch.h"

namespace fleetrun::runtime {

std::string best_path(const job::OutputSpec& output);

// Throws Error(create) when a file that is not ours has this name.
void require_own_best(const job::OutputSpec& output);

// Opens weights that have this score. Closed if the file does not exist, has another score, or is broken, about which `out` gets a warning.
UniqueFd open_best(const std::string& path, const ScoredEpoch& score, std::ostream& out);

// Renames best.safetensors, if it exists, to best.previous.safetensors, or, if that name is taken, to best.1.safetensors or the next number
// that is free. If a file of such a name has the same content already, best.safetensors goes. Prints the name. Throws Error(create).
void set_best_aside(const job::OutputSpec& output, std::ostream& out);

// Makes the open file best.safetensors, unless that has the same content. Otherwise that goes aside. Throws Error(create|io).
void restore_best(const job::OutputSpec& output, const UniqueFd& best, std::ostream& out);

// Replaces best.safetensors, and opens the new file. Throws the errors of save_weights() and require_own_best().
UniqueFd save_best(const job::OutputSpec& output, const PlainTensors& weights, Metadata about,
                   const ScoredEpoch& score, std::ostream& out);

}  // namespace fleetrun::runtime
