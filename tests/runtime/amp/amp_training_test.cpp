// Trainings in bf16 beside the same in f32, on one rank and on two.
#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "base/error/error.h"
#include "comm/collective/solo.h"
#include "runtime/kernels/device.h"
#include "runtime/tensor/philox.h"
#include "runtime/training/trainer/trainer.h"
#include "support/leave_out.h"
#include "support/run_world.h"
#include "support/slowdown.h"

namespace fleetrun::runtime::amp_training_test {
namespace {

constexpr int kBatch = 16, kSide = 12;
constexpr int kLongTraining = 80;  // steps: the loss is near 0 by then
constexpr ModelFacts kFacts = {.input_shape = {3, kSide, kSide}, .classes = 10};
constexpr std::size_t kPixels = std::size_t{3} * kSide * kSide;

bool has_bf16() { return !make_cpu_device()->narrow_types().empty(); }

// Noise around a bright square whose place is the label.
struct Samples {
  std::vector<float> images = std::vector<float>(kBatch * kPixels);
  std::vector<std::int32_t> labels = std::vector<std::int32_t>(kBatch);

  Samples(int step, int rank) {
    const auto stream = static_cast<std::uint64_t>(step * 2 + rank);
    for (std::size_t i = 0; i < images.size(); ++i) images[i] = unit_float(philox(1, stream, i)[0]) - 0.5F;
    for (std::size_t i = 0; i < labels.size(); ++i) {
      labels[i] = static_cast<std::int32_t>(philox(2, stream, i)[0] % 10);
      for (std::size_t row = 0; row < kSide; ++row)
        images[i * kPixels + row * kSide + static_cast<std::size_t>(labels[i])] += 1.0F;
    }
  }
  BatchView view() const { return {images.data(), labels.data()}; }
};

job::JobSpec job_of(job::ModelName model, bool amp) {
  job::JobSpec job;
  job.model.name = model;
  job.data.batch_size = kBatch;
  job.strategy.amp = amp;
  return job;
}

double mean_of_last_losses(const job::JobSpec& job, int steps) {
  double sum = 0;
  testing::run_world(1, [&](comm::Communicator& alone) {
    const auto device = make_cpu_device({.refuse_reference = true});
    Trainer trainer(job, kFacts, *device, alone);
    for (int step = 0; step < steps; ++step) {
      const Samples samples(step, 0);
      trainer.step(samples.view(), 0.05);
      if (step >= steps - 10) sum += trainer.score().loss;
    }
  });
  return sum / 10;
}

TEST_CASE("a training in bf16 comes near the loss of one in f32") {
  if (!has_bf16()) LEAVE_OUT("this processor computes nothing in bf16");
  for (const job::ModelName model : {job::ModelName::lenet, job::ModelName::resnet20}) {
    const double wide = mean_of_last_losses(job_of(model, false), kLongTraining);
    const double narrow = mean_of_last_losses(job_of(model, true), kLongTraining);
    CAPTURE(wide);
    CHECK(narrow < wide + 0.05);
  }
}

// What is left of a training on two ranks: of each, in a form that can be compared.
struct Ended {
  std::uint64_t weights = 0;
  float scale = 0;
  std::map<std::string, std::vector<float>> parameters;
};

using Step = std::function<void(Trainer&, int step, int rank)>;

void plain_step(Trainer& trainer, int step, int rank) {
  const Samples samples(step, rank);
  trainer.step(samples.view(), 0.05);
}

std::vector<Ended> train_two(const job::JobSpec& job, int steps, const Step& make_step = plain_step) {
  std::vector<Ended> ended(2);
  testing::run_world(2, [&](comm::Communicator& communicator) {
    const auto device = make_cpu_device({.refuse_reference = true});
    Trainer trainer(job, kFacts, *device, communicator);
    trainer.share_parameters();
    for (int step = 0; step < steps; ++step) make_step(trainer, step, communicator.rank());
    Ended& mine = ended[static_cast<std::size_t>(communicator.rank())];
    mine = {trainer.storage().fingerprint(), trainer.loss_scale().value_or(0), {}};
    const Program& program = trainer.whole_program();
    for (const ValueId id : program.of_kind(ValueKind::parameter))
      mine.parameters[program.value(id).name] = trainer.storage().read(program.value(id).name);
  });
  return ended;
}

bool all_finite(const Ended& ended) {
  for (const auto& [name, values] : ended.parameters)
    for (const float value : values)
      if (!std::isfinite(value)) return false;
  return true;
}

// Rank 1 sees an infinite pixel in these steps.
Step with_overflow_in(int first, int last) {
  return [=](Trainer& trainer, int step, int rank) {
    Samples samples(step, rank);
    if (rank == 1 && step >= first && step <= last)
      samples.images[17] = std::numeric_limits<float>::infinity();
    trainer.step(samples.view(), 0.05);
  };
}

TEST_CASE("an overflow on one of two ranks leaves both with the same new scale and the same finite weights") {
  if (!has_bf16()) LEAVE_OUT("this processor computes nothing in bf16");
  for (const job::ReduceStrategy how : {job::ReduceStrategy::AllReduce, job::ReduceStrategy::Reduce}) {
    job::JobSpec job = job_of(job::ModelName::lenet, true);
    job.strategy.build_strategy.reduce_strategy = how;
    job.strategy.fuse_all_reduce_ops = how == job::ReduceStrategy::AllReduce;
    job.strategy.amp_configs.decr_ratio = 0.5;
    const auto scale_after = [&](int first, int last) {
      const std::vector<Ended> ended = train_two(job, 6, with_overflow_in(first, last));
      CHECK(ended[0].weights == ended[1].weights);
      CHECK(all_finite(ended[0]));
      CHECK(ended[0].scale == ended[1].scale);
      return ended[0].scale;
    };
    CHECK(scale_after(9, 9) == 32768);
    CHECK(scale_after(2, 2) == 32768);  // one overflow is forgotten
    CHECK(scale_after(2, 3) == 16384);
    CHECK(scale_after(1, 4) == 8192);
  }
}

TEST_CASE("an overflow only lets momentum and decay move the weights") {
  if (!has_bf16()) LEAVE_OUT("this processor computes nothing in bf16");
  job::JobSpec job = job_of(job::ModelName::lenet, true);
  job.optimizer.name = job::OptimizerName::sgd;
  const std::vector<Ended> before = train_two(job, 2), after = train_two(job, 3, with_overflow_in(2, 2));
  CHECK(before[0].weights == after[0].weights);
}

TEST_CASE("a static scale lets an overflow through to the weights") {
  if (!has_bf16()) LEAVE_OUT("this processor computes nothing in bf16");
  job::JobSpec job = job_of(job::ModelName::lenet, true);
  job.strategy.amp_configs.use_dynamic_loss_scaling = false;
  CHECK(all_finite(train_two(job, 3)[0]));
  CHECK_FALSE(all_finite(train_two(job, 3, with_overflow_in(2, 2))[0]));
}

double distance(const Ended& a, const Ended& b) {
  double apart = 0, norm = 0;
  for (const auto& [name, values] : a.parameters) {
    const std::vector<float>& others = b.parameters.at(name);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double difference = values[i] - others[i];
      apart += difference * difference;
      norm += static_cast<double>(values[i]) * values[i];
    }
  }
  return std::sqrt(apart / norm);
}

TEST_CASE("switches of the strategy work with bf16 and change its weights by rounding at most") {
  if (!has_bf16()) LEAVE_OUT("this processor computes nothing in bf16");
  using Spec = job::StrategySpec;
  struct Switch {
    std::string name;
    void (*turn)(Spec&);
    bool same_bits = true;
  };
  const std::vector<Switch> switches = {
      {"no fused all-reduces", [](Spec& s) { s.fuse_all_reduce_ops = false; }},
      {"small groups", [](Spec& s) { s.fuse_grad_size_in_MB = 0.01; }},
      {"batch norms with activations", [](Spec& s) { s.build_strategy.fuse_bn_act_ops = true; }},
      {"groups of elementwise ops", [](Spec& s) { s.build_strategy.enable_auto_fusion = true; }},
      {"one update", [](Spec& s) { s.build_strategy.fuse_all_optimizer_ops = true; }},
      {"updates at once", [](Spec& s) { s.build_strategy.enable_backward_optimizer_op_deps = false; }},
      {"no places shared", [](Spec& s) { s.build_strategy.enable_inplace = false; }},
      {"three ops in flight", [](Spec& s) { s.execution_strategy.num_threads = 3; }},
      {"all-reduces beside the rest", [](Spec& s) { s.sync_nccl_allreduce = false; }},
      {"program order", [](Spec& s) { s.build_strategy.enable_sequential_execution = true; }},
      {"owners of parameters",
       [](Spec& s) {
         s.build_strategy.reduce_strategy = job::ReduceStrategy::Reduce;
         s.fuse_all_reduce_ops = false;
       }},
      {"owners, one broadcast",
       [](Spec& s) {
         s.build_strategy.reduce_strategy = job::ReduceStrategy::Reduce;
         s.build_strategy.fuse_broadcast_ops = true;
         s.fuse_all_reduce_ops = false;
       }},
      {"owners, no scale",
       [](Spec& s) {
         s.build_strategy.reduce_strategy = job::ReduceStrategy::Reduce;
         s.fuse_all_reduce_ops = false;
         s.amp_configs.use_dynamic_loss_scaling = false;
         s.amp_configs.init_loss_scaling = 1;
       }},
      {"no scale",
       [](Spec& s) {
         s.amp_configs.use_dynamic_loss_scaling = false;
         s.amp_configs.init_loss_scaling = 1;
       }},
      {"the forward pass made again", [](Spec& s) { s.recompute = true; }},
      {"owners and program order",
       [](Spec& s) {
         s.build_strategy.reduce_strategy = job::ReduceStrategy::Reduce;
         s.fuse_all_reduce_ops = false;
         s.build_strategy.enable_sequential_execution = true;
         s.recompute = true;
       }},
      {"another scale", [](Spec& s) { s.amp_configs.init_loss_scaling = 128; }},
      {"additions apart", [](Spec& s) { s.build_strategy.fuse_bn_add_act_ops = false; }, false},
      {"additions with activations",
       [](Spec& s) {
         s.build_strategy.fuse_bn_add_act_ops = false;
         s.build_strategy.fuse_elewise_add_act_ops = true;
       },
       false},
  };
  std::vector<job::ModelName> models = {job::ModelName::resnet20};
  if (testing::kSlowdown == 1) models.push_back(job::ModelName::mobilenet_v1);
  for (const job::ModelName model : models) {
    job::JobSpec usual = job_of(model, true);
    usual.optimizer.weight_decay = 1e-4;
    usual.data.batch_size = kBatch;
    const Ended without =
        train_two(usual, 2)[0];  // the second step starts from weights that the first one has changed
    for (const Switch& one : switches) {
      CAPTURE(one.name);
      job::JobSpec job = usual;
      one.turn(job.strategy);
      const std::vector<Ended> with = train_two(job, 2);
      CHECK(with[0].weights == with[1].weights);
      if (one.same_bits)
        CHECK(distance(without, with[0]) == 0);
      else
        CHECK(distance(without, with[0]) < 0.05);
    }
  }
}

// oneDNN 2.6 keeps a size that it works with in one place for all threads (openvinotoolkit/openvino#14324).
TEST_CASE("devices of two threads that choose kernels at once find none missing") {
  if (!has_bf16()) LEAVE_OUT("this processor computes nothing in bf16");
  const job::JobSpec job = job_of(job::ModelName::mobilenet_v1, true);
  for (int round = 0; round < (testing::kSlowdown > 1 ? 5 : 20); ++round)
    CHECK_NOTHROW(testing::run_world(2, [&](comm::Communicator&) {
      const auto device = make_cpu_device({.refuse_reference = true});
      const auto alone = comm::make_solo();
      const Trainer trainer(job, kFacts, *device, *alone);
    }));
}

TEST_CASE("batch norms over all ranks and rectified depthwise convolutions train beside bf16") {
  if (!has_bf16()) LEAVE_OUT("this processor computes nothing in bf16");
  job::JobSpec job = job_of(job::ModelName::resnet20, true);
  job.strategy.sync_batch_norm = true;
  job.strategy.build_strategy.enable_sequential_execution = true;
  std::vector<Ended> ended = train_two(job, 3);
  CHECK(ended[0].weights == ended[1].weights);
  CHECK(all_finite(ended[0]));
  job = job_of(job::ModelName::mobilenet_v1, true);
  job.strategy.build_strategy.fuse_relu_depthwise_conv = true;
  ended = train_two(job, 3);
  CHECK(ended[0].weights == ended[1].weights);
  CHECK(all_finite(ended[0]));
}

TEST_CASE("the types that a device has not are refused with those that it has") {
  const auto refusal = [](const std::string& type) {
    job::JobSpec job = job_of(job::ModelName::lenet, true);
    job.strategy.amp_configs.dtype = type == "fp16" ? job::AmpType::fp16 : job::AmpType::automatic;
    const auto device = make_cpu_device();
    const auto alone = comm::make_solo();
    try {
      Trainer trainer(job, kFacts, *device, *alone);
      return std::string("none");
    } catch (const Error& error) {
      CHECK(error.kind() == ErrorKind::config);
      return error.message();
    }
  };
  if (has_bf16()) {
    CHECK(refusal("fp16") ==
          "strategy.amp is true and amp_configs.dtype fp16, but CPU computes in f32 and bf16 here");
    CHECK(refusal("auto") == "none");
  } else {
    CHECK(refusal("auto") == "strategy.amp is true, but CPU computes in f32 only here");
  }
}

}  // namespace
}  // namespace fleetrun::runtime::amp_training_test
