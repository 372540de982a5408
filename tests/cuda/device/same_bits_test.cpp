// Trainings on the test's device that must leave the same bits.
#include <doctest/doctest.h>

#include "cuda/device/device_training.h"
#include "support/resumed_training.h"

namespace fleetrun::runtime::same_bits_on_device_test {
namespace {

using device_training::Samples, device_training::job_of, device_training::with_trainer;

constexpr int kSaved = 3, kSteps = 6;

void take_steps(Trainer& trainer, int first, int last) {
  for (int step = first; step < last; ++step) trainer.step(Samples(step).view(), 0.05);
}

std::uint64_t weights_of_whole(const job::JobSpec& job, Snapshot* saved = nullptr) {
  std::uint64_t weights = 0;
  with_trainer(job, [&](Trainer& trainer, comm::Communicator& communicator) {
    trainer.share_parameters();
    take_steps(trainer, 0, kSaved);
    test::TrainedRank rank = {trainer, communicator};
    if (saved != nullptr) *saved = test::snapshot_after(rank, kSaved);
    take_steps(trainer, kSaved, kSteps);
    weights = trainer.storage().fingerprint();
  });
  return weights;
}

std::uint64_t weights_of_resumed(const job::JobSpec& job, const Snapshot& saved) {
  std::uint64_t weights = 0;
  with_trainer(job, [&](Trainer& trainer, comm::Communicator& communicator) {
    test::TrainedRank rank = {trainer, communicator};
    test::resume_from(saved, rank);
    take_steps(trainer, kSaved, kSteps);
    weights = trainer.storage().fingerprint();
  });
  return weights;
}

TEST_CASE("a training that goes on from a checkpoint leaves the bits of one that was not interrupted") {
  for (const auto& type : device_training::all_types()) {
    CAPTURE(type.has_value());
    job::JobSpec job = job_of(job::ModelName::lenet, type);
    job.strategy.amp_configs.incr_every_n_steps = 2;
    Snapshot saved;
    const std::uint64_t whole = weights_of_whole(job, &saved);
    CHECK(weights_of_resumed(job, saved) == whole);
  }
}

TEST_CASE("recompute leaves the bits of a training that keeps its activations") {
  for (const auto& type : device_training::all_types()) {
    CAPTURE(type.has_value());
    job::JobSpec job = job_of(job::ModelName::lenet, type);
    const std::uint64_t kept = weights_of_whole(job);
    job.strategy.recompute = true;
    CHECK(weights_of_whole(job) == kept);
  }
}

}  // namespace
}  // namespace fleetrun::runtime::same_bits_on_device_test
