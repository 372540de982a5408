// A training program on a device that computes nothing, with the streams of a GPU.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "comm/rendezvous/memory_store.h"
#include "runtime/compile/build_program.h"
#include "runtime/exec/executor.h"
#include "runtime/exec/propagate_layouts.h"
#include "runtime/training/trainer/trainer.h"
#include "support/stand_in_device.h"

namespace fleetrun::runtime::test {

// The training program of a model on a stand-in device, for rank 0 of two.
class TrainingRun {
 public:
  static constexpr int kRanks = 2, kBatch = 2;

  TrainingRun(job::ModelName model, const ModelFacts& facts, const ExecutorOptions& options)
      : images_(static_cast<std::size_t>(kBatch * facts.input_shape[0] * facts.input_shape[1] *
                                         facts.input_shape[2])) {
    job::JobSpec job;
    job.model.name = model;
    job.data.batch_size = kBatch;
    job.strategy.fuse_all_reduce_ops = false;
    job.strategy.build_strategy.fuse_bn_add_act_ops = false;  // as on CUDA, which has no such op
    Program program = build_training_program(job, facts, all_ops(), {.world_size = kRanks});
    propagate_layouts(program, all_ops(), device, {});
    ops = program.ops.size();
    communicator_ = device.make_communicator({store_, 0, kRanks}, 0);
    storage_ = std::make_unique<Storage>(program, device, *communicator_);
    executor_ = std::make_unique<Executor>(std::move(program), device, *storage_,
                                           std::vector<comm::Communicator*>{communicator_.get()}, options);
  }

  void step() {
    executor_->bind("image", images_.data());
    executor_->bind("label", labels_.data());
    executor_->bind("learning_rate", &learning_rate_);
    executor_->run();
  }
  const void* fetch(const std::string& name) const { return executor_->fetch(name); }

  Executor& executor() { return *executor_; }

  StandInDevice device;
  std::size_t ops = 0;

 private:
  std::vector<float> images_;
  std::vector<std::int32_t> labels_ = std::vector<std::int32_t>(kBatch);
  float learning_rate_ = 0.1F;
  comm::MemoryStore store_;
  std::unique_ptr<comm::Communicator> communicator_;
  std::unique_ptr<Storage> storage_;
  std::unique_ptr<Executor> executor_;
};

}  // namespace fleetrun::runtime::test
