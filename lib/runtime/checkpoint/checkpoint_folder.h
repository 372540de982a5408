// A folder of checkpoints on a disk. Each is a folder that appears complete or not at all:
//
//   000007-step-2737/manifest.json, model.safetensors, optimizer.safetensors, best.safetensors, history.csv
//
// The first number counts saves, so that names sort by time whatever steps a training goes back to.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/system/unique_fd.h"
#include "job/spec/model_path.h"
#include "runtime/checkpoint/safetensors.h"
#include "runtime/checkpoint/training_state.h"
#include "runtime/checkpoint/weights.h"

namespace fleetrun::runtime {

using job::kModelFile;
constexpr const char* kOptimizerFile = "optimizer.safetensors";
constexpr const char* kMergedFile = "merged_gradients.safetensors";  // between two updates of gradient_merge
constexpr const char* kRankStatesFile = "rank_states.safetensors";   // where tensors differ between ranks
constexpr const char* kBestFile = "best.safetensors";    // the best weights so far (checkpoint.keep_best)
constexpr const char* kHistoryFile = "history.csv";      // a copy of that in log/; not needed to go on
constexpr const char* kRanksFile = "ranks.safetensors";  // only older checkpoints have one

// What kHistoryFile copies: the first bytes of a file, to which the training adds rows while the checkpoint is written.
struct HistoryFile {
  std::string path;  // "": there is none
  std::size_t bytes = 0;
};

// A training at one moment, in memory.
struct Snapshot {
  TrainingState state;
  std::map<std::string, PlainTensors> files;  // by file name
  Metadata about_model = {};                  // of kModelFile (model_card.h)
  HistoryFile history = {};
  std::shared_ptr<const UniqueFd> best = {};  // becomes kBestFile; null: there is none
};

// The same as read from a disk.
struct Checkpoint {
  std::string path;
  TrainingState state;
  std::map<std::string, Safetensors> files;
};

// Throws Error(missing) for a folder of checkpoints, with the path of the newest; Error(data) that says which file is missing, of another size or changed; Error(missing|permission|os|io|config),
// Error(protocol) for a newer version.
Checkpoint read_checkpoint(const std::string& path);

// The step of the newest checkpoint in a folder that nobody need have claimed, by its name; nothing: there is none, or it cannot be listed.
std::optional<std::int64_t> newest_step_in(const std::string& folder);

class CheckpointFolder {
 public:
  // Makes the folder, claims it until the end of this object, and removes what interrupted saves left. Never removes a
  // file that is not ours. While somebody else has claimed it, calls `wait`, which returns false when it has waited long enough.
  // Throws Error(create), also when another run has claimed it.
  CheckpointFolder(
      std::string path, int keep, const std::function<bool()>& wait = [] { return false; });

  const std::string& path() const { return path_; }
  // A number that its first user has chosen by chance, so a copy has it, too; 0: an older fleetrun, or nobody, has chosen one.
  std::uint64_t identity() const { return identity_; }
  bool is_new() const { return is_new_; }  // no run has claimed it before
  std::int64_t next_number() const;        // of the next save
  // Paths, newest first, of those with such a number or a larger one.
  std::vector<std::string> list(std::int64_t least_number = 0) const;

  // The path of the new checkpoint. Removes the oldest beyond `keep` before it writes, to make room, and after it. The newest one stays until
  // the new one is complete. Data and names are synced to the disk.
  // Throws Error(create|io), and nothing new is seen in the folder then.
  std::string write(const Snapshot& snapshot);

  // This checkpoint stays until a new one is complete, because a restart begins there.
  void keep_until_next(std::string checkpoint) { needed_ = std::move(checkpoint); }
  // This checkpoint, which the user has named, stays. So do those named before.
  void keep(std::string checkpoint) { named_.push_back(std::move(checkpoint)); }

  // Gives a checkpoint a name by which it is not found again: the new path. Throws Error(create).
  std::string set_aside(const std::string& checkpoint);

 private:
  const std::string path_;
  const int keep_;
  std::string needed_;  // "": none
  std::vector<std::string> named_;
  UniqueFd folder_, lock_;
  bool is_new_ = false;
  std::uint64_t identity_ = 0;
};

}  // namespace fleetrun::runtime
