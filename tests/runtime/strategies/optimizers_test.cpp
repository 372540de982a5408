// Optimizers, clipping, factors of the learning rate and averages against references in double precision, on 1, 2 and 4 ranks. The
// gradients of the references come from one rank with the whole batch.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <string>

#include "comm/collective/solo.h"
#include "support/rank_simulation.h"
#include "support/reference_optimizer.h"
#include "support/small_training.h"

namespace fleetrun::runtime::optimizers_test {
namespace {

using test::distance;
using test::Reference;
using test::Tensor;
using test::Tensors;
using test::Weights;
using test::widened;

constexpr int kWholeBatch = 8;
constexpr int kSteps = testing::kSlowdown > 1 ? 4 : 20;
constexpr double kRate = 0.01;
constexpr double kClose = 1e-5;  // of the norm

bool is_bias_or_norm(const std::string& name) {
  return name.find("bias") != std::string::npos || name.find("bn") != std::string::npos ||
         name.find("downsample.1") != std::string::npos;
}

job::JobSpec job_of(job::ModelName model, int ranks) {
  job::JobSpec job;
  job.model.name = model;
  job.data.batch_size = kWholeBatch / ranks;
  job.strategy.sync_batch_norm = model == job::ModelName::resnet20;
  return job;
}

// Of a model, without what is tested.
job::JobSpec plain_job(job::ModelName model, int ranks) {
  job::JobSpec job = job_of(model, ranks);
  job.optimizer.name = job::OptimizerName::sgd;
  job.strategy = job::settle_strategy(job.strategy, {.all = ranks, .of_node = ranks}).strategy;
  job.strategy.cudnn_exhaustive_search = false;
  return job;
}

// A training whose weights are given, for its gradients: the ones that the ranks have summed.
class Gradients {
 public:
  Gradients(const job::JobSpec& job, comm::Communicator& communicator)
      : batch_(job.data.batch_size),
        communicator_(communicator),
        device_(make_cpu_device()),
        trainer_(job, test::kTrainedFacts, *device_, communicator) {}

  Tensors at(const Tensors& weights, int step) {
    for (const auto& [name, values] : weights)
      trainer_.storage().write(name, std::vector<float>(values.begin(), values.end()));
    const test::StepSamples samples(step, kWholeBatch);
    trainer_.step(samples.part(batch_ * communicator_.rank()), 0);
    const Program& program = trainer_.executor().program();
    Tensors gradients;
    for (const auto& [name, values] : weights) {
      const ValueId gradient = program.gradient_of(program.find(name));
      const std::vector<float> found = trainer_.storage().read(program.value(gradient).name);
      gradients[name] = Tensor(found.begin(), found.end());
    }
    return gradients;
  }

  Tensors start() const { return widened(test::weights_of(trainer_)); }

 private:
  int batch_;
  comm::Communicator& communicator_;
  std::unique_ptr<Device> device_;
  Trainer trainer_;
};

struct Case {
  const char* name;
  void (*set)(job::JobSpec&);
  Reference (*reference)(const Tensors& weights);
};

// After kSteps steps of the reference on one rank.
Reference trained_reference(const Case& one, job::ModelName model) {
  const std::unique_ptr<comm::Communicator> alone = comm::make_solo();
  Gradients gradients(plain_job(model, 1), *alone);
  Reference reference = one.reference(gradients.start());
  for (int step = 0; step < kSteps; ++step) reference.step(gradients.at(reference.weights(), step));
  return reference;
}

struct Trained {
  Weights weights, averages;
};

Trained results_of(const Trainer& trainer, bool has_averages) {
  Trained trained = {.weights = test::weights_of(trainer), .averages = {}};
  if (has_averages)
    for (const auto& [name, values] : trained.weights)
      trained.averages[name] = trainer.storage().read(name + ".ema");
  return trained;
}

void check_close(const Reference& reference, const Trained& trained) {
  CHECK(distance(reference.weights(), widened(trained.weights)) < kClose);
  if (!trained.averages.empty()) CHECK(distance(reference.average(), widened(trained.averages)) < kClose);
}

void check_lenet(const Case& one, const Reference& reference, int ranks) {
  job::JobSpec job = job_of(job::ModelName::lenet, ranks);
  one.set(job);
  test::run_trainers(job, ranks, [&](test::TrainedRank& rank) {
    rank.trainer.share_parameters();
    test::train_steps(rank, job.data.batch_size, 0, kSteps, kRate);
    if (rank.communicator.rank() == 0)
      check_close(reference, results_of(rank.trainer, job.optimizer.ema_decay > 0));
  });
}

// A rounding that moves a ReLU of a deep net across 0 makes another training of it. So the gradients of its reference come from the
// weights of the training itself, on as many ranks.
void check_updates(const Case& one, job::ModelName model, int ranks) {
  CAPTURE(one.name);
  CAPTURE(ranks);
  const bool is_lenet = model == job::ModelName::lenet;
  CAPTURE(is_lenet);
  job::JobSpec job = job_of(model, ranks);
  one.set(job);
  auto world = comm::make_thread_world(ranks);
  test::run_trainers(job, ranks, [&](test::TrainedRank& rank) {
    rank.trainer.share_parameters();
    Gradients gradients(plain_job(job.model.name, ranks),
                        *world[static_cast<std::size_t>(rank.communicator.rank())]);
    Reference reference = one.reference(gradients.start());
    const bool is_first = rank.communicator.rank() == 0;
    for (int step = 0; step < kSteps; ++step) {
      const Tensors found = gradients.at(widened(test::weights_of(rank.trainer)), step);
      if (is_first) reference.step(found);
      test::train_steps(rank, job.data.batch_size, step, step + 1, kRate);
    }
    if (is_first) check_close(reference, results_of(rank.trainer, job.optimizer.ema_decay > 0));
  });
}

void check_against_reference(const Case& one) {
  const Reference reference = trained_reference(one, job::ModelName::lenet);
  for (const int ranks : test::simulated_ranks()) {
    CAPTURE(one.name);
    CAPTURE(ranks);
    check_lenet(one, reference, ranks);
    if (testing::kSlowdown == 1) check_updates(one, job::ModelName::resnet20, ranks);
  }
}

void check_each_update(const Case& one) {
  for (const job::ModelName model : test::simulated_models())
    for (const int ranks : test::simulated_ranks()) check_updates(one, model, ranks);
}

// The default epsilon turns the rounding of gradients near 0 into whole steps. So the references whose gradients come from one rank have
// this one.
constexpr double kEpsilon = 0.1;
constexpr double kDefaultEpsilon = 1e-8;

void set_momentless(job::JobSpec& job) { job.optimizer.name = job::OptimizerName::sgd; }

TEST_CASE("momentum adds the decay to the gradient, with and without Nesterov's form") {
  check_against_reference(
      {"momentum", [](job::JobSpec& job) { job.optimizer.weight_decay = 0.01; },
       [](const Tensors& weights) { return Reference(weights, test::momentum(kRate, 0.9, 0.01, false)); }});
  check_against_reference(
      {"nesterov",
       [](job::JobSpec& job) {
         job.optimizer.weight_decay = 0.01;
         job.optimizer.use_nesterov = true;
       },
       [](const Tensors& weights) { return Reference(weights, test::momentum(kRate, 0.9, 0.01, true)); }});
}

TEST_CASE("sgd follows the gradient") {
  check_against_reference({"sgd", set_momentless, [](const Tensors& weights) {
                             return Reference(weights, test::plain_sgd(kRate));
                           }});
}

TEST_CASE("Adam adds the decay to the gradient") {
  check_against_reference({"adam",
                           [](job::JobSpec& job) {
                             job.optimizer.name = job::OptimizerName::adam;
                             job.optimizer.epsilon = kEpsilon;
                             job.optimizer.weight_decay = 0.01;
                           },
                           [](const Tensors& weights) {
                             return Reference(weights, test::adam(kRate, 0.9, 0.999, kEpsilon, 0.01));
                           }});
}

TEST_CASE("each update of Adam, AdamW and LAMB is the reference's with the default epsilon, too") {
  check_each_update({"adam", [](job::JobSpec& job) { job.optimizer.name = job::OptimizerName::adam; },
                     [](const Tensors& weights) {
                       return Reference(weights, test::adam(kRate, 0.9, 0.999, kDefaultEpsilon, 0));
                     }});
  check_each_update({"adamw",
                     [](job::JobSpec& job) {
                       job.optimizer.name = job::OptimizerName::adamw;
                       job.optimizer.weight_decay = 0.1;
                     },
                     [](const Tensors& weights) {
                       return Reference(weights, test::adamw(kRate, 0.9, 0.999, kDefaultEpsilon, 0.1));
                     }});
  check_each_update({"lamb",
                     [](job::JobSpec& job) {
                       job.optimizer.name = job::OptimizerName::lamb;
                       job.optimizer.weight_decay = 0.01;
                     },
                     [](const Tensors& weights) {
                       return Reference(weights, test::lamb(kRate, 0.9, 0.999, kDefaultEpsilon, 0.01));
                     }});
}

TEST_CASE("gradient_merge updates with the mean gradient of k_steps batches") {
  check_against_reference({"gradient_merge",
                           [](job::JobSpec& job) {
                             job.strategy.gradient_merge = true;
                             job.strategy.gradient_merge_configs.k_steps = 4;
                           },
                           [](const Tensors& weights) {
                             Reference reference(weights, test::momentum(kRate, 0.9, 0, false));
                             reference.merges = 4;
                             return reference;
                           }});
}

TEST_CASE("AdamW decays the weights by themselves") {
  check_against_reference({"adamw",
                           [](job::JobSpec& job) {
                             job.optimizer.name = job::OptimizerName::adamw;
                             job.optimizer.epsilon = kEpsilon;
                             job.optimizer.weight_decay = 0.1;
                             job.optimizer.exclude_from_weight_decay = {"batch_norm", ".b_0"};
                           },
                           [](const Tensors& weights) {
                             Reference reference(weights, test::adamw(kRate, 0.9, 0.999, kEpsilon, 0.1));
                             reference.decays = [](const std::string& name) {
                               return !is_bias_or_norm(name);
                             };
                             return reference;
                           }});
}

TEST_CASE("LARS gives each parameter a learning rate by its norms") {
  check_against_reference(
      {"lars",
       [](job::JobSpec& job) {
         job.optimizer.name = job::OptimizerName::lars;
         job.optimizer.lars_coeff = 0.1;
         job.optimizer.weight_decay = 0.01;
       },
       [](const Tensors& weights) { return Reference(weights, test::lars(kRate, 0.9, 0.1, 0.01)); }});
}

TEST_CASE("strategy.lars makes LARS of momentum, with parameters that do not decay") {
  check_against_reference({"strategy.lars",
                           [](job::JobSpec& job) {
                             job.strategy.lars = true;
                             job.strategy.lars_configs.lars_coeff = 0.1;
                             job.strategy.lars_configs.exclude_from_weight_decay = {"batch_norm", ".b_0"};
                           },
                           [](const Tensors& weights) {
                             Reference reference(weights, test::lars(kRate, 0.9, 0.1, 0.0005));
                             reference.decays = [](const std::string& name) {
                               return !is_bias_or_norm(name);
                             };
                             return reference;
                           }});
}

TEST_CASE("strategy.lamb makes LAMB of Adam, with parameters that do not decay") {
  check_against_reference({"strategy.lamb",
                           [](job::JobSpec& job) {
                             job.optimizer.name = job::OptimizerName::adam;
                             job.optimizer.epsilon = kEpsilon;
                             job.strategy.lamb = true;
                             job.strategy.lamb_configs.exclude_from_weight_decay = {"batch_norm", ".b_0"};
                           },
                           [](const Tensors& weights) {
                             Reference reference(weights, test::lamb(kRate, 0.9, 0.999, kEpsilon, 0.01));
                             reference.decays = [](const std::string& name) {
                               return !is_bias_or_norm(name);
                             };
                             return reference;
                           }});
}

TEST_CASE("gradients are limited by value") {
  check_against_reference({"value",
                           [](job::JobSpec& job) {
                             set_momentless(job);
                             job.optimizer.gradient_clip = {job::ClipBy::value, 0.01};
                           },
                           [](const Tensors& weights) {
                             Reference reference(weights, test::plain_sgd(kRate));
                             reference.clip = [](Tensors& gradients) {
                               for (auto& [name, g] : gradients)
                                 for (double& value : g) value = std::clamp(value, -0.01, 0.01);
                             };
                             return reference;
                           }});
}

TEST_CASE("gradients are limited by the norm of each") {
  check_against_reference({"norm",
                           [](job::JobSpec& job) {
                             set_momentless(job);
                             job.optimizer.gradient_clip = {job::ClipBy::norm, 0.1};
                           },
                           [](const Tensors& weights) {
                             Reference reference(weights, test::plain_sgd(kRate));
                             reference.clip = [](Tensors& gradients) {
                               for (auto& [name, g] : gradients)
                                 if (const double norm = test::norm_of(g); norm > 0.1)
                                   for (double& value : g) value *= 0.1 / norm;
                             };
                             return reference;
                           }});
}

TEST_CASE("gradients are limited by the norm of all of them, of all ranks") {
  check_against_reference({"global norm",
                           [](job::JobSpec& job) {
                             set_momentless(job);
                             job.optimizer.gradient_clip = {job::ClipBy::global_norm, 0.25};
                           },
                           [](const Tensors& weights) {
                             Reference reference(weights, test::plain_sgd(kRate));
                             reference.clip = [](Tensors& gradients) {
                               const double norm = test::norm_of(gradients);
                               CHECK(norm > 0.25);
                               for (auto& [name, g] : gradients)
                                 for (double& value : g) value *= 0.25 / norm;
                             };
                             return reference;
                           }});
}

struct Layers {
  const char *still, *slow, *fast;
};
const Layers kLenet = {"c1", "c", "f"}, kResnet = {"layer1", "layer", "fc"};

std::map<std::string, double> factors(bool is_lenet) {
  const auto& [still, slow, fast] = is_lenet ? kLenet : kResnet;
  return {{fast, 2}, {slow, 0.5}, {still, 0}};
}

TEST_CASE("layers have factors of the learning rate, and averages follow the weights") {
  check_against_reference({"factors and averages",
                           [](job::JobSpec& job) {
                             set_momentless(job);
                             job.optimizer.learning_rate_factors =
                                 factors(job.model.name == job::ModelName::lenet);
                             job.optimizer.ema_decay = 0.75;
                           },
                           [](const Tensors& weights) {
                             Reference reference(weights, test::plain_sgd(kRate));
                             const Layers& net = weights.count("c1.weight") > 0 ? kLenet : kResnet;
                             reference.rule_of = [&net](const std::string& name) {
                               const double factor = name.starts_with(net.still)  ? 0
                                                     : name.starts_with(net.slow) ? 0.5
                                                     : name.starts_with(net.fast) ? 2
                                                                                  : 1;
                               return test::plain_sgd(kRate * factor);
                             };
                             reference.ema_decay = 0.75;
                             return reference;
                           }});
}

}  // namespace
}  // namespace fleetrun::runtime::optimizers_test
