// What rank 0 writes to output.dir: the weights, and optionally a trace and TensorBoard events.
#pragma once
#include <functional>
#include <iosfwd>
#include <optional>
#include <string>

#include "base/system/unique_fd.h"
#include "job/spec/job_spec.h"
#include "runtime/checkpoint/weights.h"
#include "runtime/observe/scored_epoch.h"

namespace fleetrun::runtime {

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

// The weights of the best epoch (checkpoint.keep_best): best.safetensors, with the score in the metadata of the file.
std::string best_path(const job::OutputSpec& output);
// Throws Error(create) when a file that is not ours has this name.
void require_own_best(const job::OutputSpec& output);
// The score in the file; none: there is no file, or it has no score.
std::optional<ScoredEpoch> read_best(const job::OutputSpec& output);
// Renames the file, if there is one, to best.previous.safetensors, or, if that name is taken, to best.1.safetensors or the next number that is
// free, and prints that. `training`: the id of the present one. Throws Error(create).
void set_best_aside(const job::OutputSpec& output, const std::string& training, std::ostream& out);
// Another training in the same folder may have set the best weights of this one aside. Of the files aside that are `ours`, the one with the
// best score gets the name best.safetensors again, a file of that name goes aside, and lines say so. Returns the score; none: no file is
// ours. All that are ours have the same metric. Throws Error(create).
std::optional<ScoredEpoch> bring_best_back(const job::OutputSpec& output,
                                           const std::function<bool(const ScoredEpoch&)>& ours,
                                           std::ostream& out);
// Gives the file a second name, as set_best_aside() chooses it, unless a file aside has the same score. A training that goes on from a
// checkpoint of another one may replace the file later, and the other one may want it back. Throws Error(create).
void keep_copy_of_best(const job::OutputSpec& output, std::ostream& out);
// Throws the errors of save_weights() and require_own_best().
void save_best(const job::OutputSpec& output, const PlainTensors& weights, Metadata about,
               const ScoredEpoch& score, std::ostream& out);

}  // namespace fleetrun::runtime
