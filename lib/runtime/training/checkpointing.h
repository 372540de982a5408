// When the state of a training is kept, and where a training goes on: between the training loop and the folder of
// checkpoints. Every rank has one of these and calls the same functions in the same order; rank 0 reads and writes.
#pragma once
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>

#include "base/run/timeline.h"
#include "runtime/checkpoint/checkpoint_folder.h"
#include "runtime/checkpoint/checkpoint_writer.h"
#include "runtime/checkpoint/requests.h"
#include "runtime/training/resume.h"

namespace fleetrun::runtime {

constexpr auto kLongestSave = std::chrono::minutes(30);  // our largest models, at 1 MB/s

// How saving went so far.
struct SaveResults {
  std::int64_t saved_steps = -1;            // of the last snapshot; -1: none yet
  int failures = 0;                         // in a row
  std::optional<std::string> last_problem;  // why the last save failed, if it did
};

// Waiting of the training for what is kept.
struct SaveWait {
  std::int64_t total_ns = 0;
  std::int64_t start_ns = 0;  // of the wait for the writer that is under way
  std::int64_t told_ns = 0;   // of that wait, when it was told last
};

class Checkpointing {
 public:
  // Without checkpoint.dir nothing is kept, and signals do what they do to any program.
  // Throws Error(create) when the folder cannot be used.
  // `timeline`: gets spans of what is kept; null: nobody watches.
  explicit Checkpointing(const CheckpointedTraining& training, Timeline* timeline = nullptr);
  ~Checkpointing();

  // Gives every rank the parameters and states to start with, as resume_training. Until then there is nothing to save, and
  // SIGTERM ends a rank at once, also one that waits for a peer.
  TrainingState resume(int batches, int samples);

  // After a step, or a batch of an evaluation. True: the ranks were asked to stop, and the state is kept; Error(io) when they were, and it
  // could not be.
  bool after_step(const TrainingState& state);
  // After an epoch with its evaluation, which `state` is past; the end of the training is kept in any case.
  void after_epoch(const TrainingState& state, bool last);

  // At the end of a training: all ranks wait for what is still being written. Throws Error(io) when too many saves went wrong one
  // after the other.
  void finish();

  // Why the last save that was tried failed; none: it did not.
  const std::optional<std::string>& last_problem() const { return results_.last_problem; }

  std::int64_t waited_ns() const { return wait_.total_ns; }          // of the training, for what is kept
  std::int64_t saved_steps() const { return results_.saved_steps; }  // of the last snapshot; -1: none yet

 private:
  bool due(const TrainingState& state) const;
  void save(const TrainingState& state);
  void keep(const TrainingState& state);
  std::int64_t begin_to_wait();
  void wait_for_writer();
  void wait_for_writer_together();
  bool is_written();
  void tell_results();

  const CheckpointedTraining training_;
  std::unique_ptr<CheckpointFolder> folder_;  // of rank 0
  std::unique_ptr<CheckpointWriter> writer_;  // of rank 0; goes before the folder
  int batches_ = 0;                           // of an epoch
  SaveRequests save_requests_;
  std::int64_t looked_at_ = 0;  // steps when it was last asked what is due; several may lie between
  SaveResults results_;
  SaveWait wait_;
  Timeline::Label snapshot_ = 0;
  Timeline* timeline_;
};

}  // namespace fleetrun::runtime
