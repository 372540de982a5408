// The order in which a stage of a pipeline works on the micro-batches of a step (Narayanan et al. 2019, PipeDream;
// Huang et al. 2019, GPipe).
#pragma once
#include <vector>

#include "job/spec/job_spec.h"

namespace fleetrun::runtime {

// Where a rank stands in its pipeline.
struct PipelinePlace {
  int stage = 0;
  int stages = 1;

  bool is_first() const { return stage == 0; }
  bool is_last() const { return stage + 1 == stages; }
};

enum class Act { receive_values, forward, send_values, receive_gradients, backward, send_gradients };

struct Turn {
  Act act = Act::forward;
  int micro_batch = 0;

  bool operator==(const Turn&) const = default;
};

// 1F1B: stages - 1 - stage forward passes, then a forward and a backward pass in turn, then the other backward passes. So at most
// stages - stage micro-batches wait for their backward pass. F-then-B: all forward passes, then all backward passes.
// Two neighbours exchange their values and gradients in the same order, so no stage waits in a circle, even when each send
// lasts until the other stage receives.
std::vector<Turn> plan_turns(job::PipelineSchedule schedule, const PipelinePlace& place, int micro_batches);

// The turns of an evaluation.
std::vector<Turn> plan_evaluation(const PipelinePlace& place);

// Two neighbours have a communicator for each direction. A stage counts its own from 0: first those to the stage before it, values before
// gradients, then those to the stage after it.
int communicator_for(Act act, const PipelinePlace& place);
int communicator_of_stages(const PipelinePlace& place);  // of all stages of a pipeline; it comes after those
int communicator_of_replicas(
    const PipelinePlace& place);  // of the ranks that have this stage; it is the last one

}  // namespace fleetrun::runtime
