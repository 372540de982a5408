// What a training run came to: the end of run_job, written to log/train.json and told in the last lines.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "base/run/time_use.h"
#include "runtime/observe/scored_epoch.h"

namespace fleetrun::runtime {

struct BestWeights {
  ScoredEpoch epoch;
  std::string file;
};

struct TrainReport {
  int world_size = 1;
  int epochs = 0;                  // begun
  int whole_epochs = 0;            // done
  std::int64_t steps = 0;          // those before a checkpoint included
  std::int64_t resumed_at = 0;     // the steps that the checkpoint had which the run went on from
  bool stopped = false;            // on request, before its end, with a checkpoint
  int planned_epochs = 0;          // of a training that was not stopped
  std::int64_t planned_steps = 0;  // likewise
  std::string checkpoint;          // path of the last one; "": none
  std::string
      resume;       // of a stopped training: the value of checkpoint.resume that goes on; "": the present one
  int classes = 0;  // of the model
  int train_samples = 0;             // in data.train
  int test_samples = 0;              // in data.test; 0: there is none
  std::int64_t skipped_samples = 0;  // different ones that could not be used, of all ranks
  std::optional<double> loss;        // of rank 0's last step; none without a step, or if a stopped one is NaN
  std::optional<double> test_loss;   // of the last evaluation
  std::optional<double> test_accuracy;  // top 1
  std::optional<int> test_epochs;       // before the last evaluation, if the training went on after it
  std::optional<BestWeights> best;      // with checkpoint.keep_best
  std::string early_end;     // what train.early_stopping says about the end; "": it did not end the training
  double train_seconds = 0;  // in training steps, waiting for data included, evaluation not
  double images_per_second = 0;      // of all ranks together, over train_seconds
  std::size_t parameter_bytes = 0;   // of the rank that has the most, states included
  std::size_t gradient_bytes = 0;    // of the rank that has the most
  std::uint64_t sent_bytes = 0;      // by rank 0 in the steps of this process, if collectives go round a ring
  std::size_t activation_bytes = 0;  // per rank: the planned arena, scratch memory included
  std::size_t activation_bytes_saved = 0;  // by blocks that use the same memory one after the other
  int in_place_pairs = 0;                  // outputs that took the place of an input
  std::string unsaved;  // why there is no checkpoint of the end; "": there is one, or none is wanted
  TimeUses time{};      // of `timed_ranks` ranks together, since the run began
  int timed_ranks = 1;
  std::string run_id;  // by it the launcher recognises the file as its own; "": started by hand
};

std::string to_json(const TrainReport& report);

// "trained 5 epochs, 1250 steps on 2 ranks in 31.2 s: 8123.4 images/s, test accuracy 0.99000"
// "trained 1130 of 1250 steps (4 of 5 epochs) on 2 ranks in 27.9 s: 8123.4 images/s, test accuracy 0.98000 after 4 epochs"
std::string describe(const TrainReport& report);

// "data: 1500 images of 10 classes, 300 for the test"
std::string describe_data(const TrainReport& report);

// "stopped after epoch 7: loss did not improve in 3 evaluations; best epoch 4\n"
// "best epoch 4: acc1 0.93750, weights: /data/output/best.safetensors\n"
// Each line only if there is something to say.
std::string describe_best(const TrainReport& report);

// "memory per rank: parameters 1.2 MiB, gradients 0.6 MiB, activations 3.4 MiB (5.1 MiB saved, 7 in-place pairs)"
std::string describe_memory(const TrainReport& report);

}  // namespace fleetrun::runtime
