// Optimizer states that hold powers of a decay rate, by which Adam, AdamW, LAMB and the averages of weights take out the bias towards their
// start at 0. The power of a moment after t updates is the product of the decay rates of these updates and of the next one.
#pragma once
#include <map>
#include <string>

#include "runtime/checkpoint/checkpoint_folder.h"

namespace fleetrun::runtime {

// The next update of a training that goes on may have another decay rate than the checkpoint's training had. `decays`: those of the
// training that goes on, as in TrainingState.
void correct_powers(Checkpoint& checkpoint, const std::map<std::string, double>& decays);

}  // namespace fleetrun::runtime
