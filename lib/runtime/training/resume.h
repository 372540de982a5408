// Where a training goes on: from a checkpoint, or from its beginning.
#pragma once
#include <iosfwd>

#include "base/run/progress_page.h"
#include "comm/make_communicator.h"
#include "job/job_spec.h"
#include "runtime/checkpoint/checkpoint_folder.h"
#include "runtime/checkpoint/training_state.h"
#include "runtime/training/trainer.h"

namespace fleetrun::runtime {

// The training of one rank whose state is kept. All of it outlives whoever keeps it.
struct CheckpointedTraining {
  const job::JobSpec& job;
  comm::World& world;
  Trainer& trainer;
  ProgressPage& page;  // gets signs of life while the disk is waited for
  std::ostream& out;   // gets what rank 0 says of checkpoints
};

struct DataSize {
  int batches = 0;  // of an epoch
  int samples = 0;  // of data.train
};

// Gives every rank the parameters and states to start with, and says from where. Every rank calls it; rank 0 reads.
// `folder`: checkpoint.dir, on rank 0; null: there is none.
// Throws Error(data) when there are checkpoints and all are bad, Error(missing) for a path that is none,
// Error(permission|os|io|protocol) when a checkpoint cannot be read.
TrainingState resume_training(const CheckpointedTraining& training, CheckpointFolder* folder,
                              const DataSize& data);

}  // namespace fleetrun::runtime
