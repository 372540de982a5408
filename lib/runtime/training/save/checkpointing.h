// Decides when to save the state of a training, and restores it at the start. It stands between the training loop and
// the folder of checkpoints. Every rank has one and calls the same functions in the same order; only rank 0 reads and
// writes.
#pragma once
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>

#include "base/run/timeline.h"
#include "base/system/unique_fd.h"
#include "runtime/checkpoint/checkpoint_folder.h"
#include "runtime/checkpoint/checkpoint_writer.h"
#include "runtime/checkpoint/requests.h"
#include "runtime/training/save/resume.h"

namespace fleetrun::runtime {

constexpr auto kLongestSave = std::chrono::minutes(30);  // enough for our largest models at 1 MB/s

// The results of saving so far.
struct SaveResults {
  std::int64_t saved_steps = -1;  // of the last snapshot; -1: none yet
  std::int64_t saved_place = 0;   // place_in_training of it, or of the checkpoint that this attempt loaded
  std::int64_t written_steps =
      -1;            // of the last complete checkpoint of this attempt, on rank 0; -1: none yet
  int failures = 0;  // in a row
  std::optional<std::string> last_problem;  // why the last save failed, if it did
  std::string last_path;  // of the last complete checkpoint of this attempt, on rank 0; "": none
};

// Which checkpoints a training saves.
enum class Saves {
  none,
  at_stop,  // into the folder that the launcher named, because the job has no checkpoint.dir
  planned   // into checkpoint.dir, also at a stop
};

// How long the training has waited for checkpoints.
struct SaveWait {
  std::int64_t total_ns = 0;
  std::int64_t start_ns = 0;  // start of the present wait for the writer
  std::int64_t told_ns = 0;   // when rank 0 last printed a line about that wait
};

// Fifteen members, because the folder, its writer, the history and the best weights exist on rank 0 alone, and only once they are needed.
class Checkpointing {
 public:
  // Without checkpoint.dir it saves only when the ranks are stopped, if the launcher named a folder for that. Otherwise it saves
  // nothing, and signals have their default effect.
  // `timeline`: gets a span per snapshot and save; null: no trace is wanted.
  // Throws Error(create) when the folder cannot be used.
  explicit Checkpointing(const CheckpointedTraining& training, Timeline* timeline = nullptr);
  ~Checkpointing();

  // Gives every rank the parameters and states to start with; see resume_training(). Before this call there is nothing
  // to save, so SIGTERM ends a rank at once, even one that waits for a peer.
  TrainingState resume(const DataSize& data);

  // Every checkpoint from now on has a copy of the rows that are in this file then; -1: there is none.
  void save_history_of(int file);

  // On rank 0. The best weights so far, which every checkpoint from now on has, too; closed: there are none. After resume() they are those of
  // the checkpoint, if it has any, until another call.
  void set_best(UniqueFd weights);
  // The path of the best weights in the checkpoint that was loaded, or "" without a checkpoint. The file may be missing.
  const std::string& loaded_best() const { return loaded_best_; }

  // Call it after each step, and after each batch of an evaluation. `last`: no step of the training is left. Returns true
  // when SIGTERM or SIGINT asked the ranks to stop; the checkpoint is complete then. Throws Error(io) when that
  // checkpoint, or several checkpoints in a row, could not be written.
  bool after_step(const TrainingState& state, bool last);
  // Call it after each epoch and its evaluation, with the state after them. Always saves after the last epoch.
  void after_epoch(const TrainingState& state, bool last);

  // Call it at the end of a training: all ranks wait until the last checkpoint is written, or has failed (last_problem).
  void finish();

  // Why the last save failed; none: it did not fail.
  const std::optional<std::string>& last_problem() const { return results_.last_problem; }

  // Of the last complete checkpoint, on rank 0; "": none.
  const std::string& last_path() const { return results_.last_path; }
  // The value of checkpoint.resume with which the same command goes on from the last checkpoint.
  std::string resume_value() const { return saves_ == Saves::planned ? "auto" : results_.last_path; }

  std::int64_t waited_ns() const { return wait_.total_ns; }  // time that the training waited for checkpoints
  std::int64_t saved_steps() const { return results_.saved_steps; }  // of the last snapshot; -1: none yet
  // In samples (place_in_training): that of the last snapshot, or of the checkpoint that was loaded; 0: none yet.
  std::int64_t saved_place() const { return results_.saved_place; }
  const SavedPoint& loaded() const { return loaded_; }  // the checkpoint that was loaded, on rank 0

 private:
  bool due(const TrainingState& state, bool last) const;
  void open_folder(const std::string& path, int keep);
  std::string stop_folder() const;
  bool waits_for_claim(const std::string& path, std::int64_t began_ns);
  void save(const TrainingState& state);
  void begin_to_write(const TrainingState& state);
  std::int64_t begin_to_wait();
  void wait_for_writer();
  void wait_for_writer_together();
  bool is_written();
  void tell_results(bool is_over);
  HistoryFile history_now() const;

  const CheckpointedTraining training_;
  const Saves saves_;
  std::unique_ptr<CheckpointFolder> folder_;  // of rank 0; with Saves::at_stop only once it is needed
  UniqueFd history_;                          // of rank 0
  std::shared_ptr<const UniqueFd> best_;      // of rank 0
  std::unique_ptr<CheckpointWriter> writer_;  // of rank 0; destroyed before the folder and the history
  int batches_ = 0;                           // of an epoch
  SavedPoint loaded_;
  std::string loaded_best_;
  SaveRequests save_requests_;
  std::int64_t last_seen_step_ = 0;  // at the last call of after_step(); more than one step may lie between
  SaveResults results_;
  SaveWait wait_;
  Timeline::Label snapshot_ = 0;
  Timeline* timeline_;
};

}  // namespace fleetrun::runtime
