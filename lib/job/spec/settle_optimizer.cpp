#include "job/spec/settle_optimizer.h"

namespace fleetrun::job {

OptimizerSpec settle_optimizer(const JobSpec& job) {
  OptimizerSpec optimizer = job.optimizer;
  if (optimizer.name == OptimizerName::lars) optimizer.epsilon = 0;
  if (job.strategy.lars) {
    const LarsSpec& lars = job.strategy.lars_configs;
    optimizer.name = OptimizerName::lars;
    optimizer.lars_coeff = lars.lars_coeff;
    optimizer.weight_decay = lars.lars_weight_decay;
    optimizer.epsilon = lars.epsilon;
    optimizer.exclude_from_weight_decay = lars.exclude_from_weight_decay;
  }
  if (job.strategy.lamb) {
    const LambSpec& lamb = job.strategy.lamb_configs;
    optimizer.name = OptimizerName::lamb;
    optimizer.weight_decay = lamb.lamb_weight_decay;
    optimizer.exclude_from_weight_decay = lamb.exclude_from_weight_decay;
  }
  return optimizer;
}

}  // namespace fleetrun::job
