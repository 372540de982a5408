// The communicators of a training, as its strategy asks for them.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "comm/make_communicator.h"
#include "job/spec/job_spec.h"
#include "runtime/kernels/device.h"
#include "runtime/training/trainer/pipeline_links.h"
#include "runtime/training/trainer/trainer.h"

namespace fleetrun::runtime {

class TrainingCommunicators {
 public:
  // Every rank makes the same ones. `strategy` is settled; `world` outlives them.
  // `records`: gets their collectives and those of the world's communicator from now on; null: no records are wanted.
  TrainingCommunicators(const job::StrategySpec& strategy, comm::World& world, Device& device,
                        FlightRecords* records = nullptr);
  // For one of several trainings in this process. `name`, used once in a world, is how the ranks of this training find each other. The
  // world's own communicator takes no part, unless the rank is alone.
  TrainingCommunicators(const job::StrategySpec& strategy, comm::World& world, Device& device,
                        const std::string& name);
  // When an error ends the training, the communicators move to the world and stay connected. Other ranks then notice
  // the error only when our process ends. So none of them ends first and looks like the cause.
  ~TrainingCommunicators();
  TrainingCommunicators(const TrainingCommunicators&) = delete;
  TrainingCommunicators& operator=(const TrainingCommunicators&) = delete;

  Communicators all() const { return {*flat_, of_gradients_, same_layers_}; }

 private:
  void make_gradients(const job::StrategySpec& strategy, const std::string& prefix);
  void add(comm::Communicator* of_gradients, const std::string& name);
  void add_groups(const job::StrategySpec& strategy, const std::string& prefix);
  void add_links(int stages, const std::string& prefix);
  void record_in(FlightRecords& records) const;

  comm::World& world_;
  Device& device_;
  std::unique_ptr<PipelineLinks> links_;  // with strategy.pipeline: the stores of what they made
  std::vector<comm::Circle> made_;        // those of all ranks have no store of their own
  comm::Communicator* flat_ = nullptr;
  comm::Communicator* same_layers_ = nullptr;
  std::vector<comm::Communicator*> of_gradients_;
  std::vector<std::string> names_;  // of those, in the flight record
};

// "all-reduces by 2 communicators, in groups of 4 ranks by their leaders, each waited for; num_threads 3"
std::string describe_communicators(const job::StrategySpec& strategy);

}  // namespace fleetrun::runtime
