// What one training step costs: bytes by kind, and the work of each forward op, from the program alone.
#pragma once
#include <cstddef>
#include <vector>

#include "runtime/graph/op_def.h"
#include "runtime/graph/program.h"

namespace fleetrun::runtime {

// One op of the forward part. The backward part does about twice the work of the forward part.
struct ForwardCost {
  double flops = 0;            // multiplications and additions
  double moved_bytes = 0;      // read and written
  double parameter_bytes = 0;  // of parameters that this op reads first
  double crossing_bytes = 0;   // of activations that later ops read: what a cut after this op sends
};

struct StepCosts {
  double parameter_bytes = 0;
  double gradient_bytes = 0;
  double optimizer_bytes = 0;   // states that belong to a parameter
  double buffer_bytes = 0;      // states that belong to an op (running statistics)
  double activation_bytes = 0;  // as planned: blocks share memory one after the other
  double batch_bytes = 0;       // of what is fed to a step: images, labels
  double largest_parameter_bytes = 0;
  std::vector<std::int64_t> parameter_elements;  // of each parameter, in the order of their gradients
  double steps_per_sum = 1;      // of gradients, or of parameters with localsgd; the program does not tell
  double batches_in_memory = 0;  // that a rank has read, or reads ahead; the program does not tell
  std::vector<ForwardCost> forward;  // in the order of the program

  double all_bytes() const {
    return parameter_bytes + gradient_bytes + optimizer_bytes + buffer_bytes + activation_bytes;
  }
};

// Of a program of build_training_program(), without the layouts and the scratch memory that a device adds.
StepCosts step_costs(const Program& program, const OpTable& ops);

}  // namespace fleetrun::runtime
