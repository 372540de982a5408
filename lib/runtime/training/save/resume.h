// Resumes a training from a checkpoint, or starts it from the beginning.
#pragma once
#include <cstdint>
#include <iosfwd>

#include "base/run/progress_page.h"
#include "comm/make_communicator.h"
#include "job/spec/job_spec.h"
#include "runtime/checkpoint/checkpoint_folder.h"
#include "runtime/checkpoint/model_card.h"
#include "runtime/checkpoint/training_state.h"
#include "runtime/observe/history.h"
#include "runtime/training/trainer/trainer.h"

namespace fleetrun::runtime {

// What saving and resuming need of one rank's training. All of it outlives its users.
struct CheckpointedTraining {
  const job::JobSpec& job;
  comm::World& world;
  Trainer& trainer;
  const ModelCard& card;
  ProgressPage& page;  // gets signs of life during waits for the disk
  std::ostream& out;   // gets rank 0's lines about checkpoints
};

struct DataSize {
  int batches = 0;  // of an epoch
  int samples = 0;  // of data.train
  SplitFacts split = {};
};

struct ResumedTraining {
  TrainingState state;           // where the training goes on
  std::int64_t saved_place = 0;  // place_in_training of the checkpoint, with the ranks that saved it
  SavedPoint saved = {};         // the checkpoint, on rank 0
  std::string best = {};         // path of the best weights in it, which may be missing
};

// Gives every rank the parameters and states to start with, and prints their source. Only rank 0 reads; every
// rank calls it. `folder`: checkpoint.dir, on rank 0; null: there is none.
// Throws Error(data) when all checkpoints are bad, Error(missing) when a given path is not a checkpoint,
// Error(permission|os|io|protocol) when a checkpoint cannot be read.
ResumedTraining resume_training(const CheckpointedTraining& training, CheckpointFolder* folder,
                                const DataSize& data);

}  // namespace fleetrun::runtime
