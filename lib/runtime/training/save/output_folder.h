// What rank 0 writes to output.dir: the weights, and optionally a trace and TensorBoard events.
#pragma once
#include <iosfwd>
#include <string>

#include "base/system/unique_fd.h"
#include "job/spec/job_spec.h"
#include "runtime/checkpoint/weights.h"

namespace fleetrun::runtime {

constexpr const char* kAnotherOutput = "output.dir=FOLDER after the job file chooses another one";  // a hint

// Links to nowhere take a name, too.
bool is_taken(const std::string& path);
// "out/model.safetensors" and "previous" make "out/model.previous.safetensors".
std::string beside(const std::string& path, const std::string& word);
// "out/model.1.safetensors", or the next number that is free.
std::string free_path_beside(const std::string& path);

// Creates output.dir. Finds problems with saving results now, not after hours of training. While the returned
// descriptor is open, no other training can use the folder. Throws Error(create), also when another training uses the
// folder.
[[nodiscard]] UniqueFd prepare_output(const job::OutputSpec& output);

// The output with the name that the claimed folder has now, since somebody may have renamed it. If it was removed, the name is the old one; throws
// Error(create) if another training uses that by now. Call it before each save. If the folder is renamed during a save, the file may go to the old path.
job::OutputSpec find_output(job::OutputSpec output, const UniqueFd& claimed);

// Writes the weights to model.safetensors, with `about` as its metadata, and prints their path. Those of an earlier run are then in
// model.previous.safetensors. Never replaces a file of that name that a user put
// there during the training: writes to model.1.safetensors, or the next free number, and warns. Creates the folder
// again if it was removed. Throws the errors of save_weights().
void save_result(const job::OutputSpec& output, const PlainTensors& weights, const Metadata& about,
                 std::ostream& out);

// The same for a training that was already complete. If model.safetensors has these weights, it writes nothing, so that the weights of
// the earlier run stay in model.previous.safetensors.
void save_result_again(const job::OutputSpec& output, const PlainTensors& weights, const Metadata& about,
                       std::ostream& out);

// Weights in NAME.safetensors that fleetrun wrote get the name NAME.previous.safetensors before new ones replace them, or NAME.1.safetensors
// if a file of the user, or one that set_best_aside() has renamed, has that name. Returns the name; "": there are none. Throws Error(create).
std::string keep_earlier_weights(const std::string& path);

}  // namespace fleetrun::runtime
