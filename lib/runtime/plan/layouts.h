// How many ranks can share a job, and what each layout costs per rank: memory by the programs of the ranks, time by formulas.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/run/plan_request.h"
#include "job/spec/step_share.h"
#include "runtime/plan/step_costs.h"

namespace fleetrun::runtime {

// The ranks are data_parallel x pipeline. Sharding divides states (stage 1), gradients (2) and parameters (3) among the ranks of a set
// (Rajbhandari et al. 2020, arXiv:1910.02054). With fewer ranks than data_parallel in a set, there are several sets of neighbours, and each set has all states. A pipeline has one stage per rank and works on micro_batches in turn, one
// forward, one backward (Narayanan et al. 2021, arXiv:2104.04473).
struct RankLayout {
  int data_parallel = 1;
  int sharding = 0;  // stage
  int set = 1;       // ranks of a set
  int pipeline = 1;
  int micro_batches = 1;

  bool operator==(const RankLayout&) const = default;
};
std::string describe(const RankLayout& layout);  // "data parallel 8, sharding stage 1 in sets of 4"

struct RankMemory {
  double parameters = 0, gradients = 0, optimizer = 0, activations = 0, buffers = 0;  // bytes

  double all() const { return parameters + gradients + optimizer + activations + buffers; }
};

// Seconds of a step that are not hidden behind each other.
struct StepTime {
  double compute = 0;  // if all ranks always worked
  double bubble =
      0;  // ranks of a pipeline wait for their first and after their last micro batch, or for the slowest stage
  double sums = 0;      // waits for gradients and parameters
  double pipeline = 0;  // sends activations between stages

  double all() const { return compute + bubble + sums + pipeline; }
};

struct PlannedLayout {
  RankLayout layout;
  RankMemory memory;
  StepTime time;
  bool fits = false;
  double samples_per_second = 0;  // of all ranks
  std::string why;                // why it loses; of the best one: empty
};

// What the ranks of a layout run.
struct LayoutCosts {
  std::vector<StepCosts> stages;  // of the pipeline; without a pipeline, the one rank that keeps the most
  double gradient_bytes = 0;      // of the whole model
  double steps_per_sum = 1;       // of gradients, or of parameters with localsgd
  double batches_in_memory = 0;   // that a rank has read, or reads ahead
  int micro_batches = 1;
};

// Of the stage that needs the most.
RankMemory memory_of(const LayoutCosts& costs);
StepTime time_of(const RankLayout& layout, const LayoutCosts& costs, const PlanRequest& machine);

// Returns none if a training of the job cannot have the layout.
using CostsOf = std::function<std::optional<LayoutCosts>(const RankLayout&)>;

// Every possible layout of these ranks, the best first: those that fit into the memory come before those that do not. A step
// trains the samples of all `shares`, one share for each rank, whatever the layout. The costs are those of the largest share.
std::vector<PlannedLayout> plan_layouts(const job::StepShares& shares, const PlanRequest& machine,
                                        const CostsOf& costs_of);

// Layouts by rank, with their memory by kind, the time of a step, and why they lose.
std::string describe(const std::vector<PlannedLayout>& layouts, const PlanRequest& machine);

}  // namespace fleetrun::runtime
