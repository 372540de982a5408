// The model of a job without its training: one rank's part of `fleetrun eval`.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "comm/collective/communicator.h"
#include "job/spec/job_spec.h"
#include "runtime/eval/eval_report.h"
#include "runtime/exec/executor.h"
#include "runtime/exec/storage.h"
#include "runtime/models/model.h"
#include "runtime/training/trainer/batch_view.h"
#include "runtime/training/trainer/score_sums.h"

namespace fleetrun::runtime {

// The job without strategy.pipeline: each rank has the whole model, and its batches are as large as the micro-batches of a training.
job::JobSpec without_pipeline(job::JobSpec job);

using Algorithms = std::map<std::string, std::string>;  // of convolutions, by the names of their outputs

class Evaluator {
 public:
  // Builds the evaluation program of a training of the job. With the algorithms of that training's test pass (ModelCard::algorithms), each
  // sample gets the same scores to the bit. The job has train.threads. Rank 0 reads model.pretrained for all ranks. Throws as load_pretrained().
  Evaluator(const job::JobSpec& job, const ModelFacts& facts, const Algorithms& algorithms, Device& device,
            comm::Communicator& communicator);

  // What all ranks must agree on.
  const std::string& program_text() const { return program_text_; }

  // Adds this batch, in the form of image_form_for(device), to the score, and appends its predictions; `samples` has the number of each sample in the data set. Places without a
  // label are left out. A loss is NaN when scores are.
  void evaluate(const BatchView& batch, std::span<const std::int32_t> samples,
                std::vector<Prediction>& predictions);

  // Of all ranks; every rank calls it.
  Score finish();

 private:
  comm::Communicator& communicator_;
  std::string program_text_;
  std::string scores_;  // the name of the value: [B,classes]
  std::int64_t classes_ = 0;
  std::unique_ptr<Storage> storage_;
  std::unique_ptr<Executor> executor_;
  ScoreSums sums_;
};

}  // namespace fleetrun::runtime
