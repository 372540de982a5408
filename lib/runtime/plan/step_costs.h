// What one training step costs: bytes by kind, and the work of each forward op, from the program alone.
#pragma once
#include <cstddef>
#include <vector>

#include "runtime/graph/op_def.h"
#include "runtime/graph/program.h"

namespace fleetrun::runtime {

// One op of the forward part. The backward part does about twice the work of the forward part.
struct ForwardCost {
  double flops = 0;        // multiplications and additions
  double moved_bytes = 0;  // read and written
};

struct StepCosts {
  double parameter_bytes = 0;
  double gradient_bytes = 0;
  double optimizer_bytes = 0;        // states that belong to a parameter
  double buffer_bytes = 0;           // states that belong to an op (running statistics)
  double activation_bytes = 0;       // as planned: blocks share memory one after the other
  double batch_bytes = 0;            // of what is fed to a step: images, labels
  double sent_bytes = 0;             // to other stages of a pipeline
  std::vector<ForwardCost> forward;  // in the order of the program

  double all_bytes() const {
    return parameter_bytes + gradient_bytes + optimizer_bytes + buffer_bytes + activation_bytes;
  }
};

// Of a program of build_training_program() or build_part_of_rank(), without the layouts and the scratch memory that a device adds.
StepCosts step_costs(const Program& program, const OpTable& ops);

}  // namespace fleetrun::runtime
