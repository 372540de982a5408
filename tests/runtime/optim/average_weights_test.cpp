#include "runtime/optim/average_weights.h"

#include <doctest/doctest.h>

#include "runtime/checkpoint/owned_tensors.h"
#include "support/small_training.h"
#include "support/temporary_folder.h"

namespace fleetrun::runtime::average_weights_test {
namespace {

constexpr int kBatch = 4;

job::JobSpec averaged_job(bool evaluates_averages) {
  job::JobSpec job;
  job.model.name = job::ModelName::mlp;
  job.model.hidden = {8};
  job.data.batch_size = kBatch;
  job.optimizer.ema_decay = 0.5;
  job.optimizer.ema_evaluate = evaluates_averages;
  return job;
}

double test_loss(Trainer& trainer) {
  const test::StepSamples samples(99, kBatch);
  trainer.evaluate(samples.part(0));
  return trainer.finish_evaluation().loss;
}

TEST_CASE(
    "with ema_evaluate a model is evaluated and exported with the averages, and trains on with its weights") {
  double of_averages = 0, of_weights = 0;
  test::Weights averages;
  test::run_trainers(averaged_job(true), 1, [&](test::TrainedRank& rank) {
    const double before = test_loss(rank.trainer);
    test::train_steps(rank, kBatch, 0, 3, 0.5);
    of_averages = test_loss(rank.trainer);
    CHECK(of_averages != before);
    const Program& program = rank.trainer.executor().program();
    const TemporaryFolder home;
    save_weights(home / "averages",
                 collect_weights(program, rank.trainer.storage(), rank.communicator, Weights::averaged));
    const Safetensors file = read_safetensors(home / "averages");
    for (const ValueId id : program.of_kind(ValueKind::parameter)) {
      const std::string& name = program.value(id).name;
      averages[name] = rank.trainer.storage().read(average_name(name));
      CHECK(to_floats(file.tensors.at(name)) == averages[name]);
      CHECK(averages[name] != rank.trainer.storage().read(name));
    }
  });
  test::run_trainers(averaged_job(false), 1, [&](test::TrainedRank& rank) {
    test::train_steps(rank, kBatch, 0, 3, 0.5);
    of_weights = test_loss(rank.trainer);
    for (const auto& [name, values] : averages) rank.trainer.storage().write(name, values);
    CHECK(test_loss(rank.trainer) == of_averages);
  });
  CHECK(of_weights != of_averages);
}

}  // namespace
}  // namespace fleetrun::runtime::average_weights_test
