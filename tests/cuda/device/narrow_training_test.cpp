// Trainings in the narrow types of the test's device beside the same in f32, and steps that it repeats from a recording.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdlib>
#include <functional>
#include <limits>
#include <vector>

#include "cuda/device/device_training.h"

namespace fleetrun::runtime::narrow_training_test {
namespace {

using device_training::job_of, device_training::narrow_types, device_training::Samples;

void with_trainer(const job::JobSpec& job, const std::function<void(Trainer&)>& use) {
  device_training::with_trainer(job, [&](Trainer& trainer, comm::Communicator&) { use(trainer); });
}

double last_losses(const job::JobSpec& job, int steps, double rate) {
  double sum = 0;
  with_trainer(job, [&](Trainer& trainer) {
    for (int step = 0; step < steps; ++step) {
      trainer.step(Samples(step).view(), rate);
      if (step >= steps - 5) sum += trainer.score().loss;
    }
  });
  return sum / 5;
}

void check_near_f32(job::ModelName model, int steps, double rate) {
  const double wide = last_losses(job_of(model, std::nullopt), steps, rate);
  CHECK(wide < 1.8);  // it learned something: log(10) is 2.3
  for (const DType type : narrow_types()) {
    CAPTURE(describe(type));
    const double narrow = last_losses(job_of(model, type), steps, rate);
    CAPTURE(wide);
    CHECK(std::abs(narrow - wide) < 0.1);
  }
}

TEST_CASE("lenet trains in the narrow types as in f32") { check_near_f32(job::ModelName::lenet, 40, 0.05); }

// A deeper network magnifies rounding, unless its steps are small.
TEST_CASE("resnet20 trains in the narrow types as in f32") {
  check_near_f32(job::ModelName::resnet20, 60, 0.01);
}

// Two steps: the backward part of every kind of batch norm, and statistics that the first step has moved.
TEST_CASE("a network with batch norms takes its first steps in the narrow types as in f32") {
  const auto losses_of = [](std::optional<DType> type, bool fused) {
    job::JobSpec job = job_of(job::ModelName::resnet20, type);
    job.strategy.build_strategy.fuse_bn_act_ops = job.strategy.build_strategy.fuse_bn_add_act_ops = fused;
    std::vector<double> losses;
    with_trainer(job, [&](Trainer& trainer) {
      for (int step = 0; step < 2; ++step) {
        trainer.step(Samples(step).view(), 0.05);
        losses.push_back(trainer.score().loss);
      }
    });
    return losses;
  };
  const std::vector<double> wide = losses_of(std::nullopt, true);
  for (const DType type : narrow_types())
    for (const bool fused : {false, true}) {
      CAPTURE(describe(type));
      CAPTURE(fused);
      const std::vector<double> narrow = losses_of(type, fused);
      for (std::size_t step = 0; step < wide.size(); ++step)
        CHECK(narrow[step] == doctest::Approx(wide[step]).epsilon(0.02));
    }
}

TEST_CASE("an overflow in a narrow type lowers the loss scale and leaves the weights finite") {
  for (const DType type : narrow_types()) {
    CAPTURE(describe(type));
    job::JobSpec job = job_of(job::ModelName::lenet, type);
    job.strategy.amp_configs.decr_every_n_nan_or_inf = 1;
    with_trainer(job, [&](Trainer& trainer) {
      for (int step = 0; step < 3; ++step) {
        Samples samples(step);
        if (step == 1) samples.images[17] = std::numeric_limits<float>::infinity();
        const float before = trainer.loss_scale().value_or(0);
        trainer.step(samples.view(), 0.05);
        CHECK((trainer.loss_scale().value_or(0) < before) == (step == 1));
      }
      const Program& program = trainer.whole_program();
      for (const ValueId id : program.of_kind(ValueKind::parameter))
        for (const float value : trainer.storage().read(program.value(id).name)) CHECK(std::isfinite(value));
    });
  }
}

std::uint64_t weights_after(const job::JobSpec& job, const char* recorded) {
  std::uint64_t weights = 0;
  ::setenv("FLEETRUN_CUDA_GRAPHS", recorded, 1);
  with_trainer(job, [&](Trainer& trainer) {
    for (int step = 0; step < 5; ++step) trainer.step(Samples(step).view(), 0.05);
    weights = trainer.storage().fingerprint();
    const RecordedRuns* const runs = trainer.executor().recorded();
    if (runs == nullptr) return;                                  // the device records nothing
    CHECK(runs->replays() == (runs->why_not().empty() ? 3 : 0));  // both places of the feeds have a first run
  });
  ::unsetenv("FLEETRUN_CUDA_GRAPHS");
  return weights;
}

TEST_CASE(
    "steps that the device repeats from a recording leave the same bits as steps that it is given op by op") {
  for (const auto& type : device_training::all_types()) {
    const job::JobSpec job = job_of(job::ModelName::lenet, type);
    CHECK(weights_after(job, "1") == weights_after(job, "0"));
  }
}

TEST_CASE("steps leave the same bits whether the host waits after each of them or gets ahead of the device") {
  const job::JobSpec job = job_of(job::ModelName::lenet, std::nullopt);
  std::uint64_t waited = 0;
  with_trainer(job, [&](Trainer& trainer) {
    for (int step = 0; step < 5; ++step) {
      trainer.step(Samples(step).view(), 0.05);
      trainer.score();
    }
    waited = trainer.storage().fingerprint();
  });
  CHECK(weights_after(job, "0") == waited);
  CHECK(weights_after(job, "1") == waited);
}

// bf16 has the exponents of f32: factors of 2 change no bit of what it rounds.
TEST_CASE("a loss scale that doubles every second step leaves the same bits, recorded or not") {
  job::JobSpec steady = job_of(job::ModelName::lenet, DType::bf16), doubling = steady;
  steady.strategy.amp_configs.init_loss_scaling = doubling.strategy.amp_configs.init_loss_scaling = 1024;
  doubling.strategy.amp_configs.incr_every_n_steps = 2;
  const std::uint64_t wanted = weights_after(steady, "0");
  CHECK(weights_after(doubling, "0") == wanted);
  CHECK(weights_after(doubling, "1") == wanted);
}

TEST_CASE("a training goes on where the device refuses to record it") {
  const job::JobSpec job = job_of(job::ModelName::lenet, std::nullopt);
  const std::uint64_t usual = weights_after(job, "0");
  ::setenv("FLEETRUN_ON_HOST_REFUSE_GRAPHS", "1", 1);  // heard by CUDA on the host only
  CHECK(weights_after(job, "1") == usual);
  ::unsetenv("FLEETRUN_ON_HOST_REFUSE_GRAPHS");
}

}  // namespace
}  // namespace fleetrun::runtime::narrow_training_test
