#include "runtime/plan/step_costs.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "comm/collective/solo.h"
#include "job/parse_job.h"
#include "job/spec/settle_strategy.h"
#include "runtime/compile/build_program.h"
#include "runtime/training/setup/model_facts.h"
#include "runtime/training/trainer/trainer.h"
#include "support/small_training.h"

namespace fleetrun::runtime::step_costs_test {
namespace {

job::JobSpec job_of(const std::string& model, int side, int batch) {
  const std::string shape = "[3, " + std::to_string(side) + ", " + std::to_string(side) + "]";
  job::JobSpec job =
      job::parse_job_text(
          R"({"model": {"name": ")" + model + R"(", "class_dim": 1000, "input_shape": )" + shape +
              R"(}, "data": {"train": {"format": "synthetic", "samples": 64, "classes": 1000, "shape": )" +
              shape + R"(}, "batch_size": )" + std::to_string(batch) + R"(},
                          "strategy": {"cudnn_exhaustive_search": false}})",
          "job.json", {})
          .spec;
  job.strategy = job::settle_strategy(job.strategy, {}).strategy;
  return job;
}

StepCosts costs_of(const job::JobSpec& job) {
  return step_costs(build_training_program(job, resolve_model_facts(job), all_ops(), {}), all_ops());
}

double flops_of(const StepCosts& costs) {
  double flops = 0;
  for (const ForwardCost& op : costs.forward) flops += op.flops;
  return flops;
}

TEST_CASE("ResNet-50: the published numbers of parameters and multiplications") {
  const StepCosts costs = costs_of(job_of("resnet50", 224, 8));
  CHECK(costs.parameter_bytes == 4 * 25557032.0);  // torchvision.models.resnet50
  CHECK(costs.gradient_bytes == costs.parameter_bytes);
  CHECK(costs.optimizer_bytes == costs.parameter_bytes);                    // the velocities of momentum
  CHECK(costs.buffer_bytes == 4 * 53120.0);                                 // running means and variances
  CHECK(flops_of(costs) / 8 == doctest::Approx(2 * 4.09e9).epsilon(0.01));  // 4.09 GMAC, torchvision
}

TEST_CASE("narrow convolutions and products have the operations of those in f32") {
  job::JobSpec job = job_of("resnet50", 224, 8);
  const double in_f32 = flops_of(costs_of(job));
  job.strategy.amp = true;
  CHECK(flops_of(costs_of(job)) == in_f32);
}

TEST_CASE("frozen layers compute as much in the forward part as others") {
  job::JobSpec job = job_of("resnet50", 224, 8);
  const double all = flops_of(costs_of(job));
  job.model.freeze = {"conv1", "bn1", "layer1*", "layer2*"};
  CHECK(flops_of(costs_of(job)) == all);
}

TEST_CASE("ResNet-50: the predicted memory is that of the executor, within a few percent") {
  const job::JobSpec job = job_of("resnet50", 224, 8);
  const StepCosts costs = costs_of(job);
  const auto device = make_cpu_device();
  const auto solo = comm::make_solo();
  const Trainer trainer(job, resolve_model_facts(job), *device, *solo);
  const auto kept = static_cast<double>(trainer.storage().parameter_bytes());
  const auto gradients = static_cast<double>(trainer.storage().gradient_bytes());
  const auto activations = static_cast<double>(trainer.executor().schedule().arena_bytes);
  CHECK(costs.parameter_bytes + costs.optimizer_bytes + costs.buffer_bytes ==
        doctest::Approx(kept).epsilon(0.01));
  CHECK(costs.gradient_bytes == doctest::Approx(gradients).epsilon(0.01));
  CHECK(costs.activation_bytes == doctest::Approx(activations).epsilon(0.05));
}

// Few, large layers: what a rank keeps differs much from 1/ranks.
job::JobSpec job_of_large_layers(int ranks, const std::string& strategy) {
  job::JobSpec job = job::parse_job_text(
                         R"({"model": {"name": "mlp", "hidden": [1024, 512, 256]},
              "data": {"train": {"format": "synthetic", "samples": 64, "classes": 10, "shape": [3, 8, 8]}, "batch_size": 8},
              "strategy": )" +
                             strategy + "}",
                         "job.json", {})
                         .spec;
  job.strategy = job::settle_strategy(job.strategy, {.all = ranks, .of_node = ranks}).strategy;
  return job;
}

TEST_CASE("the predicted memory of the part with the most is what its rank keeps, whatever the layout") {
  for (const char* strategy :
       {R"({"sharding": true, "sharding_configs": {"stage": 1}})",
        R"({"sharding": true, "sharding_configs": {"stage": 2}})",
        R"({"sharding": true, "sharding_configs": {"stage": 3}})",
        R"({"build_strategy": {"reduce_strategy": "Reduce"}})", R"({"pipeline": true})"})
    for (const int ranks : {2, 4}) {
      const job::JobSpec job = job_of_large_layers(ranks, strategy);
      std::vector<double> kept(static_cast<std::size_t>(ranks)), predicted(kept);
      test::run_trainers(job, ranks, [&](test::TrainedRank& trained) {
        const int rank = trained.communicator.rank();
        const Storage& storage = trained.trainer.storage();
        kept[static_cast<std::size_t>(rank)] =
            static_cast<double>(storage.parameter_bytes() + storage.gradient_bytes() +
                                trained.trainer.executor().schedule().arena_bytes);
        predicted[static_cast<std::size_t>(rank)] =
            step_costs(build_part_of_rank(job, test::kTrainedFacts, all_ops(), {.world_size = ranks}, rank),
                       all_ops())
                .all_bytes();
      });
      CAPTURE(std::string(strategy));
      CAPTURE(ranks);
      CHECK(std::ranges::max(predicted) == doctest::Approx(std::ranges::max(kept)).epsilon(0.05));
    }
}

TEST_CASE("a stage sends its outputs to the next one, and the gradients of its inputs to the one before") {
  const job::JobSpec job = job_of_large_layers(2, R"({"pipeline": true})");
  const auto sent_by = [&](int rank) {
    return step_costs(build_part_of_rank(job, test::kTrainedFacts, all_ops(), {.world_size = 2}, rank),
                      all_ops())
        .sent_bytes;
  };
  CHECK(sent_by(0) > 0);
  CHECK(sent_by(0) == sent_by(1));
}

}  // namespace
}  // namespace fleetrun::runtime::step_costs_test
