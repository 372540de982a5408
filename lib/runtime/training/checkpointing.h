// When the state of a training is kept, and where a training goes on: between the training loop and the folder of
// checkpoints. Every rank has one of these and calls the same functions in the same order; rank 0 reads and writes.
#pragma once
#include <cstdint>
#include <iosfwd>
#include <memory>
#include <optional>

#include "base/progress_page.h"
#include "base/timeline.h"
#include "comm/make_communicator.h"
#include "job/job_spec.h"
#include "runtime/checkpoint/checkpoint_folder.h"
#include "runtime/checkpoint/checkpoint_writer.h"
#include "runtime/checkpoint/requests.h"
#include "runtime/checkpoint/training_state.h"
#include "runtime/training/trainer.h"

namespace fleetrun::runtime {

class Checkpoints {
 public:
  // Without checkpoint.dir nothing is kept, and signals do what they do to any program.
  // Throws Error(create) when the folder cannot be used.
  // `page` gets signs of life while the disk is waited for. `timeline`: gets spans of what is kept; null: nobody watches.
  Checkpoints(const job::JobSpec& job, comm::World& world, Trainer& trainer, ProgressPage& page,
              std::ostream& out, Timeline* timeline = nullptr);
  ~Checkpoints();

  // Gives every rank the parameters and states to start with, and says from where. An epoch has `batches` batches, the data set
  // `samples` samples.
  // Throws Error(data) when there are checkpoints and none can be used, Error(missing) for a path that is none.
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
  const std::optional<std::string>& last_problem() const { return last_problem_; }

  std::int64_t waited_ns() const { return waited_ns_; }      // of the training, for what is kept
  std::int64_t saved_steps() const { return saved_steps_; }  // of the last snapshot; -1: none yet

 private:
  bool due(const TrainingState& state) const;
  std::optional<Checkpoint> find(std::int64_t first_own);
  std::optional<Checkpoint> newest_good(std::int64_t least_number);
  void check_kind(const Checkpoint& checkpoint) const;
  TrainingState share(const Checkpoint* checkpoint, const TrainingState& start);
  void save(const TrainingState& state);
  void keep(const TrainingState& state);
  std::int64_t begin_to_wait();
  void wait_for_writer();
  void wait_for_writer_together();
  bool is_written();
  void tell_results();

  const job::JobSpec& job_;
  comm::World& world_;
  Trainer& trainer_;
  ProgressPage& page_;
  std::ostream& out_;
  std::unique_ptr<CheckpointFolder> folder_;  // of rank 0
  std::unique_ptr<CheckpointWriter> writer_;  // of rank 0; goes before the folder
  int batches_ = 0;                           // of an epoch
  int samples_ = 0;                           // of data.train
  SaveRequests save_requests_;
  std::int64_t looked_at_ = 0;  // steps when it was last asked what is due; several may lie between
  std::int64_t saved_steps_ = -1;
  int failures_ = 0;                         // in a row
  std::optional<std::string> last_problem_;  // why the last save failed, if it did
  std::int64_t waited_ns_ = 0;
  std::int64_t wait_start_ns_ = 0;  // of the wait for the writer that is under way
  std::int64_t told_ns_ = 0;        // of that wait, when it was told last
  Timeline* timeline_;
  Timeline::Label label_ = 0;
};

}  // namespace fleetrun::runtime
