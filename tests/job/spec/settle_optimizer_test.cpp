#include "job/spec/settle_optimizer.h"

#include <doctest/doctest.h>

namespace fleetrun::job::settle_optimizer_test {
namespace {

TEST_CASE("strategy.lars gives momentum the settings of lars_configs") {
  JobSpec job;
  job.optimizer.momentum = 0.5;
  job.strategy.lars = true;
  job.strategy.lars_configs = {
      .lars_coeff = 0.25, .lars_weight_decay = 0.125, .epsilon = 1, .exclude_from_weight_decay = {"a"}};
  const OptimizerSpec lars = settle_optimizer(job);
  CHECK(lars.name == OptimizerName::lars);
  CHECK(lars.momentum == 0.5);
  CHECK(lars.lars_coeff == 0.25);
  CHECK(lars.weight_decay == 0.125);
  CHECK(lars.epsilon == 1);
  CHECK(lars.exclude_from_weight_decay == std::vector<std::string>{"a"});
}

TEST_CASE("strategy.lamb gives adam the settings of lamb_configs") {
  JobSpec job;
  job.optimizer.name = OptimizerName::adam;
  job.optimizer.epsilon = 0.5;
  job.strategy.lamb = true;
  job.strategy.lamb_configs = {.lamb_weight_decay = 0.125, .exclude_from_weight_decay = {"a"}};
  const OptimizerSpec lamb = settle_optimizer(job);
  CHECK(lamb.name == OptimizerName::lamb);
  CHECK(lamb.epsilon == 0.5);
  CHECK(lamb.weight_decay == 0.125);
  CHECK(lamb.exclude_from_weight_decay == std::vector<std::string>{"a"});
}

TEST_CASE("other optimizers stay as they are; LARS without the strategy adds nothing to its divisor") {
  JobSpec job;
  job.optimizer.weight_decay = 0.5;
  CHECK(settle_optimizer(job).name == OptimizerName::momentum);
  CHECK(settle_optimizer(job).weight_decay == 0.5);
  job.optimizer.name = OptimizerName::lars;
  CHECK(settle_optimizer(job).epsilon == 0);
}

}  // namespace
}  // namespace fleetrun::job::settle_optimizer_test
