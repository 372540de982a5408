#include "runtime/training/scored_weights.h"

#include "runtime/checkpoint/owned_tensors.h"
#include "runtime/optim/local_training.h"

namespace fleetrun::runtime {

PlainTensors collect_scored_weights(Run& run) {
  const bool differ = trains_locally(run.trainer.whole_program());
  if (differ) run.trainer.begin_evaluation();
  const Weights which = run.job.optimizer.ema_evaluate ? Weights::averaged : Weights::trained;
  PlainTensors weights =
      collect_weights(run.trainer.whole_program(), run.trainer.storage(), *run.world.communicator, which);
  if (differ) run.trainer.end_evaluation();
  return weights;
}

}  // namespace fleetrun::runtime
