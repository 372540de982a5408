// The model that one rank trains: programs on a device, their storage, and the step.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/run/timeline.h"
#include "comm/collective/communicator.h"
#include "job/spec/job_spec.h"
#include "job/spec/settle_pipeline.h"
#include "runtime/compile/pipeline.h"
#include "runtime/exec/executor.h"
#include "runtime/exec/search_algorithms.h"
#include "runtime/exec/storage.h"
#include "runtime/models/model.h"
#include "runtime/observe/score.h"
#include "runtime/training/setup/class_weights.h"
#include "runtime/training/trainer/batch_view.h"
#include "runtime/training/trainer/score_sums.h"

namespace fleetrun::runtime {

// Which communicator sums what. If there is only one, it sums everything. With strategy.pipeline, `gradients` are those of
// PipelineLinks, and `same_layers` is the last of them.
struct Communicators {
  comm::Communicator& flat;                    // parameters and scores
  std::vector<comm::Communicator*> gradients;  // communicator_count() of them, by number (settle_strategy.h)
  comm::Communicator* same_layers;             // of the ranks that have the same parameters

  Communicators(comm::Communicator& only)
      : flat(only), gradients({&only}), same_layers(&only) {}  // NOLINT: stands for such a set
  Communicators(comm::Communicator& flat_one, std::vector<comm::Communicator*> of_gradients,
                comm::Communicator* of_same_layers = nullptr)
      : flat(flat_one),
        gradients(std::move(of_gradients)),
        same_layers(of_same_layers != nullptr ? of_same_layers : &flat) {}
};

struct TrainerOptions {
  int threads = 1;
  Timeline* timeline =
      nullptr;  // gets the spans of the ops in steps, and outlives the trainer; null: no trace is wanted
  PassWatcher watcher = nullptr;         // sees the training program after each pass
  ImageForm feeds = ImageForm::numbers;  // what batches have of their images
};

// The programs of a job on this rank, and single steps and evaluations with them. The loop is in training/train.cpp.
// More than ten members: programs, storage and executors are made one after the other, each from those before it, and a step binds, counts
// and sums into the rest.
class Trainer {
 public:
  // Initializes the parameters from train.seed. Every rank makes a trainer, because rank 0 tells the others which algorithms to use
  // for ops.
  Trainer(const job::JobSpec& job, const ModelFacts& facts, Device& device,
          const Communicators& communicators, const TrainerOptions& options = {});

  // Replaces the parameters by those in model.pretrained, if the job has it. Every rank calls it, before share_parameters() and the
  // first step. Returns lines for the user about the file. Throws as load_pretrained().
  std::vector<std::string> start_from_pretrained(const job::JobSpec& job);

  // What all ranks must agree on before the first step: the training program with its layouts.
  const std::string& program_text() const { return program_text_; }

  // The same program on every rank, before each rank keeps only its own part (reduce_strategy Reduce, sharding): all
  // states, with owners.
  const Program& whole_program() const { return whole_; }

  // With strategy.pipeline each rank has a stage of the model, and the last stage has the scores.
  int stages() const { return stages_; }
  int classes() const { return facts_.classes; }

  // Lines for the user about how the program was made, mostly what the passes did.
  const std::vector<std::string>& pass_messages() const { return pass_messages_; }

  const AlgorithmSearch& algorithm_search() const { return search_; }

  // With data.class_weights: one weight for each class. Until then, all classes count the same.
  void weigh_classes(std::vector<float> weights) { sample_weights_->set_classes(std::move(weights)); }

  // Copies rank 0's parameters to all ranks. Checkpointing::resume() calls it, before the first step.
  void share_parameters();

  // Goes on after `steps` steps, as if this trainer had done them, with the gradients of `merged` batches that wait for an update of
  // strategy.gradient_merge. Call it before the first step.
  void start_at(std::int64_t steps, int merged) {
    training_->start_at(static_cast<std::uint64_t>(steps), static_cast<std::uint64_t>(merged));
  }

  // The stages of one pipeline get the same batch; only the first needs its images.
  void step(const BatchView& batch, double learning_rate);
  std::vector<OpTime> time_alone(int repeats) { return training_->time_alone(repeats); }
  // Time in which the steps so far only communicated; see Executor.
  std::int64_t communication_ns() const { return training_->communication_ns(); }
  // That this rank sent in the steps so far; see Communicator.
  std::uint64_t sent_bytes() const { return sent_bytes_; }
  // Of the last step's batch, this rank's part; with data.class_weights the loss is the weighted mean of that part alone. With
  // strategy.pipeline every rank calls it. Evaluations in between change nothing.
  Score score() const;
  std::optional<float> loss_scale() const;  // of the next step, where strategy.amp moves it

  // Puts the weights that will be saved into the storage of all ranks: call it before an evaluation and before writing weights. Copies rank
  // 0's running statistics, because each rank trains with those of its own batches or, with sync_batch_norm, of all ranks' batches.
  // With localsgd, takes the mean of all weights instead; finish_evaluation() gives each rank its own back, and so does end_evaluation().
  void begin_evaluation();

  // Adds a batch to the running sums of an evaluation; `finish_evaluation` sums them over the ranks.
  void evaluate(const BatchView& batch);
  Score finish_evaluation();

  // The last part of finish_evaluation(), for who wants no score.
  void end_evaluation();

  // During an evaluation with localsgd: swaps the averaged weights with those that this rank trains.
  void exchange_weights();

  // Equal on ranks whose weights are equal; with localsgd, of the weights of the last average.
  std::uint64_t fingerprint() const;

  const Storage& storage() const { return *storage_; }
  Storage& storage() { return *storage_; }
  const Executor& executor() const { return *training_; }
  void stop_measuring_ops() { training_->stop_measuring_ops(); }
  const Executor& evaluation_executor() const { return *evaluation_; }

 private:
  void tell_recording();
  bool moves_loss_scale() const;
  void share_statistics();
  void average_weights();
  void share_common_states();
  void evaluate_some(const BatchView& samples);
  BatchView weighted(const BatchView& batch);
  BatchView micro_batch(const BatchView& batch, int number) const;

  bool is_last_stage() const { return communicator_.rank() % stages_ == stages_ - 1; }

  comm::Communicator& communicator_;
  comm::Communicator& same_layers_;
  int stages_ = 1;  // 1 without strategy.pipeline
  job::MicroBatches micro_batches_;
  ModelFacts facts_;
  std::string program_text_;
  Program whole_;
  std::vector<std::string> pass_messages_;
  AlgorithmSearch search_;
  std::unique_ptr<Storage> storage_;
  std::unique_ptr<Executor> training_;
  std::unique_ptr<Executor> evaluation_;
  std::optional<SampleWeights> sample_weights_;  // with data.class_weights
  float learning_rate_ = 0;                      // bound to the program's feed
  std::uint64_t sent_bytes_ = 0;
  ScoreSums evaluated_;  // by this rank since the last finish
  // With localsgd, during an evaluation: the weights of this rank's training.
  std::map<std::string, std::vector<float>> other_weights_;
};

// As long as it lives, the trainer's storage has the weights that this rank trains, even during an evaluation.
class TrainedWeightsHere {
 public:
  explicit TrainedWeightsHere(Trainer& trainer) : trainer_(trainer) { trainer_.exchange_weights(); }
  ~TrainedWeightsHere() { trainer_.exchange_weights(); }
  TrainedWeightsHere(const TrainedWeightsHere&) = delete;
  TrainedWeightsHere& operator=(const TrainedWeightsHere&) = delete;

 private:
  Trainer& trainer_;
};

}  // namespace fleetrun::runtime
