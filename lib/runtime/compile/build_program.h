// From a job to the programs that its ranks run.
#pragma once
#include "job/spec/job_spec.h"
#include "runtime/compile/pipeline.h"
#include "runtime/graph/op_def.h"
#include "runtime/graph/program.h"
#include "runtime/models/model.h"

namespace fleetrun::runtime {

struct PassSettings {
  int world_size = 1;
  const OpNames* device_ops = nullptr;           // see PassContext
  std::vector<std::string>* messages = nullptr;  // see PassContext
  PassWatcher watcher = nullptr;                 // see run_passes
  DType narrow = DType::bf16;                    // of strategy.amp
  ImageForm feeds = ImageForm::numbers;          // what batches have of their images
};

// Model, loss, accuracy, backward, optimizer, and the passes of the strategy.
// With a global batch that the ranks do not divide it is the program of the ranks with the larger share.
// Feeds: image f32[B,C,H,W] (with ImageForm::pixels instead pixels u8[B,C,H,W] and view i32[B,4]), label i32[B],
// learning_rate f32[1], and with data.class_weights sample_weight f32[B].
// Fetches: loss f32[1] (the mean of this rank's batch), hits f32[3] (top-1 hits, top-5 hits, samples).
Program build_training_program(const job::JobSpec& job, const ModelFacts& facts, const OpTable& ops,
                               const PassSettings& settings);

// What `rank` has of the training program: the stage of a pipeline, or with sharding the updates that it owns. It has no layouts and
// algorithms of a device. If the ranks do not divide a global batch, the rank has the larger share.
Program build_part_of_rank(const job::JobSpec& job, const ModelFacts& facts, const OpTable& ops,
                           const PassSettings& settings, int rank);

// What the device of a target runs.
struct Programs {
  Program training;       // this rank's part, with its layouts
  Program evaluation;     // with the layouts of the parameters that the two share
  Program whole;          // the training program before each rank took its own part (reduce_strategy Reduce)
  Program smaller_whole;  // `whole` of the ranks with one sample less; without ops: there are none
  AlgorithmSearch search;
};

// Every rank calls it: rank 0 tells the others by which algorithms ops are done. Throws Error(config) as run_passes.
Programs build_programs(const job::JobSpec& job, const ModelFacts& facts, const OpTable& ops,
                        const PassSettings& settings, const Target& target);

// Model without dropout, loss and accuracy; parameters are those of the training program.
// Feeds: image, label (-1: no sample). Fetches: losses f32[B] (0 where there is no sample), hits f32[3]. B is the same on all
// ranks: the largest share of a training step.
Program build_evaluation_program(const job::JobSpec& job, const ModelFacts& facts, const OpTable& ops,
                                 int ranks = 1);

}  // namespace fleetrun::runtime
