// Ranks as processes, each with the test's device of its own. On one GPU they talk by sockets, and each says that it is a
// host by itself: NCCL wants no GPU twice in one host.
#include <doctest/doctest.h>

#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <limits>
#include <map>
#include <optional>
#include <stdexcept>

#include <fmt/format.h>

#include "base/error/error.h"
#include "comm/communicator_cases.h"
#include "job/spec/settle_pipeline.h"
#include "job/spec/settle_strategy.h"
#include "runtime/checkpoint/safetensors.h"
#include "runtime/tensor/philox.h"
#include "runtime/training/trainer/trainer.h"
#include "runtime/training/trainer/training_communicators.h"
#include "support/process_world.h"
#include "support/temporary_folder.h"
#include "support/test_device.h"

namespace fleetrun::runtime::ranks_test {
namespace {

using testing::ProcessWorld;

void be_a_host_by_itself(int rank) {
  const std::map<std::string, std::string> settings = {{"NCCL_HOSTID", fmt::format("fleetrun-test-{}", rank)},
                                                       {"NCCL_P2P_DISABLE", "1"},
                                                       {"NCCL_SHM_DISABLE", "1"},
                                                       {"NCCL_IB_DISABLE", "1"},
                                                       {"NCCL_SOCKET_IFNAME", "lo"}};
  for (const auto& [name, value] : settings) ::setenv(name.c_str(), value.c_str(), 1);
}

// The device of a rank, and the communicator that serves it.
struct Place {
  std::unique_ptr<Device> device;
  std::unique_ptr<comm::Communicator> own;  // null: that of the world serves
  comm::Communicator* communicator;

  Place(comm::World& world, bool on_cpu) {
    be_a_host_by_itself(world.env.rank);
    device = on_cpu ? make_cpu_device() : test::make_test_device();
    device->enter_thread(1);
    own = device->make_communicator(world.party(), 0);
    communicator = own ? own.get() : world.communicator.get();
  }
};

void wait_for_all(ProcessWorld& world, int size) {
  for (int rank = size - 1; rank >= 0; --rank) REQUIRE(world.wait(rank) == 0);
}

TEST_CASE("ranks with a device each: every collective, dtype and size") {
  for (const int size : {2, 4}) {
    CAPTURE(size);
    ProcessWorld world(size, [](comm::World& ranks) {
      testing::run_cases(*Place(ranks, false).communicator, testing::communicator_cases());
    });
    wait_for_all(world, size);
  }
}

TEST_CASE("ranks in groups, by communicators composed of two: every collective, dtype and size") {
  for (const auto algorithm : {comm::HierarchicalAlgorithm::leader, comm::HierarchicalAlgorithm::scatter}) {
    ProcessWorld world(4, [algorithm](comm::World& ranks) {
      const Place place(ranks, false);
      const auto make = [&](const comm::Party& party, const std::string& name) {
        auto of_device = place.device->make_communicator(party, 1);
        return of_device ? std::move(of_device) : ranks.more(party, name);
      };
      const auto composed =
          comm::make_hierarchical({.party = ranks.party(), .group_size = 2, .algorithm = algorithm}, make);
      testing::run_cases(*composed, testing::communicator_cases());
    });
    wait_for_all(world, 4);
  }
}

TEST_CASE("several communicators of the same ranks, in use by turns") {
  ProcessWorld world(2, [](comm::World& ranks) {
    const Place place(ranks, false);
    if (!place.own) return;  // this device has none of its own
    const auto second = place.device->make_communicator(ranks.party(), 1);
    for (int i = 0; i < 3; ++i)
      for (comm::Communicator* each : {place.own.get(), second.get()}) {
        float value = 1;
        each->all_reduce({&value, 1, DType::f32}, comm::ReduceOp::sum);
        if (value != 2) throw std::runtime_error(fmt::format("the sum is {}, wanted 2", value));
      }
  });
  wait_for_all(world, 2);
}

TEST_CASE("a rank that ends is named by the others, with the collective") {
  ProcessWorld world(3, [](comm::World& ranks) {
    const Place place(ranks, false);
    float value = 0;
    for (int i = 0; i < 20; ++i) place.communicator->all_reduce({&value, 1, DType::f32}, comm::ReduceOp::sum);
    ranks.communicator->barrier();  // all have done theirs
    if (ranks.env.rank == 1) ::_exit(0);
    try {
      place.communicator->all_reduce({&value, 1, DType::f32}, comm::ReduceOp::sum);
    } catch (const Error& error) {
      const std::string wanted =
          fmt::format("rank {}: collective 21, all_reduce of 1 f32 (sum): waited for rank 1", ranks.env.rank);
      if (!error.message().starts_with(wanted)) throw;
      return;
    }
    throw std::runtime_error("nothing was thrown");
  });
  wait_for_all(world, 3);
}

constexpr int kSteps = 20;
constexpr int kGlobalBatch = 32;
constexpr int kPixels = 3 * 12 * 12;
constexpr ModelFacts kFacts = {.input_shape = {3, 12, 12}, .classes = 10};

struct GlobalBatch {
  std::vector<float> images = std::vector<float>(kGlobalBatch * kPixels);
  std::vector<std::int32_t> labels = std::vector<std::int32_t>(kGlobalBatch);

  explicit GlobalBatch(int step) {
    for (std::size_t i = 0; i < images.size(); ++i)
      images[i] = unit_float(philox(1, static_cast<std::uint64_t>(step), i)[0]) - 0.5F;
    for (std::size_t i = 0; i < labels.size(); ++i)
      labels[i] = static_cast<std::int32_t>(philox(2, static_cast<std::uint64_t>(step), i)[0] % 10);
  }
};

// Without the running statistics of batch_norm, which each rank has of its own samples.
void write_parameters(const Trainer& trainer, const std::string& path) {
  Safetensors file;
  std::map<std::string, std::vector<float>> values;
  for (const Value& value : trainer.executor().program().values) {
    if (value.kind != ValueKind::parameter) continue;
    const std::vector<float>& kept = values[value.name] = trainer.storage().read(value.name);
    file.tensors[value.name] = {
        DType::f32, value.shape, {reinterpret_cast<const char*>(kept.data()), kept.size() * sizeof(float)}};
  }
  write_safetensors(path, file);
}

struct Training {
  job::ModelName model;
  double learning_rate;
  job::StrategySpec strategy = {};
  int steps = kSteps;
  job::OptimizerName optimizer = job::OptimizerName::momentum;
  double clip = 0;                      // of the norm of all gradients; 0: none
  std::optional<int> overflow_in = {};  // the step in which the last rank has an infinite pixel
  std::optional<int> ends_in = {};      // the step before which rank 1 ends
};

// The steps of a rank; its parameters go to the file. Returns how many of the steps the device repeated from recordings.
std::int64_t train(comm::World& world, bool on_cpu, const Training& training, const std::string& path) {
  be_a_host_by_itself(world.env.rank);
  const auto device = on_cpu ? make_cpu_device() : test::named_device(training.strategy);
  const TrainingCommunicators communicators(training.strategy, world, *device);
  job::JobSpec job;
  job.model.name = training.model;
  job.optimizer.name = training.optimizer;
  job.strategy = training.strategy;
  job.strategy.cudnn_exhaustive_search = false;  // on the CPU Winograd's rounding
  if (training.clip > 0) job.optimizer.gradient_clip = {job::ClipBy::global_norm, training.clip};
  const int stages = job::stages_of(training.strategy, world.env.world_size);
  job.data.batch_size = kGlobalBatch / (world.env.world_size / stages);
  Trainer trainer(job, kFacts, *device, communicators.all());
  trainer.share_parameters();
  for (int step = 0; step < training.steps; ++step) {
    GlobalBatch batch(step);
    if (step == training.ends_in && world.env.rank == 1) ::_exit(0);
    if (step == training.overflow_in) batch.images.back() = std::numeric_limits<float>::infinity();
    const auto first = static_cast<std::size_t>(world.env.rank / stages * job.data.batch_size);
    trainer.step({batch.images.data() + first * kPixels, batch.labels.data() + first},
                 training.learning_rate);
  }
  write_parameters(trainer, path);
  const RecordedRuns* const recorded = trainer.executor().recorded();
  return recorded == nullptr ? 0 : recorded->replays();
}

// The narrow types of the test's device, of a process that makes it only to ask.
std::vector<DType> narrow_types() { return test::make_test_device()->narrow_types(); }

struct Apart {
  double difference = 0, norm = 0;
  double share() const { return std::sqrt(difference / norm); }
};

Apart apart(const std::string& ours, const std::string& theirs) {
  const Safetensors a = read_safetensors(ours), b = read_safetensors(theirs);
  REQUIRE(a.tensors.size() == b.tensors.size());
  Apart sum;
  for (const auto& [name, tensor] : a.tensors) {
    const auto x = tensor.as<float>(), y = b.tensors.at(name).as<float>();
    REQUIRE(x.size() == y.size());
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double here = static_cast<double>(x[i]), there = static_cast<double>(y[i]);
      sum.difference += (here - there) * (here - there);
      sum.norm += there * there;
    }
  }
  return sum;
}

// The file of a rank after training with `size` of them.
struct Trained {
  Trained(const Training& training, int size, bool on_cpu) {
    ProcessWorld world(size,
                       [&](comm::World& ranks) { train(ranks, on_cpu, training, file_of(ranks.env.rank)); });
    wait_for_all(world, size);
  }
  std::string file_of(int rank) const { return folder / fmt::format("{}.safetensors", rank); }

  TemporaryFolder folder;
};

void check_like_cpu(const Training& training) {
  for (const int size : {1, 2, 4}) {
    CAPTURE(size);
    const Trained device(training, size, false), cpu(training, size, true);
    const double share = apart(device.file_of(0), cpu.file_of(0)).share();
    MESSAGE(size << " ranks: " << share << " of the norm from the CPU's");
    CHECK(share <= 1e-4);
    for (int rank = 1; rank < size; ++rank)
      CHECK(apart(device.file_of(rank), device.file_of(0)).difference == 0);
  }
}

// Rounding makes a relu, or a maximum, go the other way now and then. The deeper a network, the more that grows from step to
// step; it stays small only when the steps are.
const Training kLenet = {job::ModelName::lenet, 0.02};
const Training kResnet20 = {job::ModelName::resnet20, 0.0005};

TEST_CASE("lenet: after 20 steps 1, 2 and 4 ranks hold the same parameters, and those of the CPU's ranks") {
  check_like_cpu(kLenet);
}

TEST_CASE(
    "resnet20: after 20 steps 1, 2 and 4 ranks hold the same parameters, and those of the CPU's ranks") {
  check_like_cpu(kResnet20);
}

TEST_CASE(
    "gradients summed by several communicators, beside the backward pass, for their owners, and in groups train the same network") {
  const Trained plain(kLenet, 4, false);
  Training beside = kLenet, owners = kLenet, leaders = kLenet, slices = kLenet;
  beside.strategy.nccl_comm_num = 3;
  beside.strategy.sync_nccl_allreduce = false;
  owners.strategy.build_strategy.reduce_strategy = job::ReduceStrategy::Reduce;
  owners.strategy.sync_nccl_allreduce = false;  // nothing in a step waits for its last broadcasts
  leaders.strategy.use_hierarchical_allreduce = true;
  leaders.strategy.hierarchical_allreduce_inter_nranks = 2;
  slices.strategy = leaders.strategy;
  slices.strategy.hierarchical_allreduce_algorithm = job::HierarchicalAlgorithm::scatter;
  slices.strategy.nccl_comm_num = 2;
  for (const Training& training : {beside, owners, leaders, slices}) {
    const Trained other(training, 4, false);
    CHECK(apart(other.file_of(0), plain.file_of(0)).share() <= 1e-5);
    for (int rank = 1; rank < 4; ++rank) CHECK(apart(other.file_of(rank), other.file_of(0)).difference == 0);
  }
}

TEST_CASE("the stages of a pipeline, one of them or two of each, hold what the CPU's stages hold") {
  Training stages = kLenet;
  stages.clip = 0.5;
  stages.strategy.pipeline = true;
  stages.strategy.pipeline_configs.accumulate_steps = 4;
  stages.strategy.hybrid_configs.pp_degree = 2;
  stages.strategy.use_hierarchical_allreduce = false;
  stages.strategy.fuse_all_reduce_ops = false;
  Training forwards_first = stages;
  forwards_first.strategy.pipeline_configs.schedule_mode = job::PipelineSchedule::forwards_then_backwards;
  for (const int size : {2, 4})
    for (const Training& training : {stages, forwards_first}) {
      CAPTURE(size);
      const Trained device(training, size, false), cpu(training, size, true);
      for (int rank = 0; rank < size; ++rank) {
        CAPTURE(rank);
        CHECK(apart(device.file_of(rank), cpu.file_of(rank)).share() <= 1e-4);
      }
    }
}

TEST_CASE("with dgc two ranks send what the CPU's ranks send") {
  Training sparse = kLenet;
  sparse.strategy.dgc = true;
  sparse.strategy.dgc_configs = {.rampup_begin_step = 2, .rampup_step = 4, .sparsity = {0.75, 0.9}};
  sparse.steps = 8;
  const Trained device(sparse, 2, false), cpu(sparse, 2, true);
  CHECK(apart(device.file_of(0), cpu.file_of(0)).share() <= 1e-4);
  CHECK(apart(device.file_of(1), device.file_of(0)).difference == 0);
  Training whole = sparse;
  whole.strategy.dgc = false;
  CHECK(apart(Trained(whole, 2, true).file_of(0), cpu.file_of(0)).share() > 1e-3);
}

TEST_CASE(
    "ranks that average their weights now and then, or round gradients to f16, hold what the CPU's ranks hold") {
  Training local = kLenet, adaptive = kLenet, narrow = kLenet;
  local.strategy.localsgd = true;
  local.strategy.localsgd_configs = {.k_steps = 3,
                                     .begin_step = 2};  // so that the last step is one that averages
  adaptive.strategy.adaptive_localsgd = true;
  adaptive.strategy.adaptive_localsgd_configs = {.init_k_steps = 2, .begin_step = 2};
  narrow.strategy.fp16_allreduce = true;
  for (const Training& training : {local, adaptive, narrow}) {
    const Trained device(training, 2, false), cpu(training, 2, true);
    for (int rank = 0; rank < 2; ++rank) {
      const double share = apart(device.file_of(rank), cpu.file_of(rank)).share();
      MESSAGE("rank " << rank << ": " << share << " of the norm from the CPU's");
      CHECK(share <= 1e-4);
    }
  }
}

TEST_CASE(
    "with sync_batch_norm two ranks train as one does with the whole batch, and without it they do not") {
  Training apart_from_others = kResnet20;
  apart_from_others.steps = 1;
  apart_from_others.learning_rate = 0.05;
  Training together = apart_from_others;
  together.strategy.sync_batch_norm = true;
  const Trained whole(apart_from_others, 1, false), halves(together, 2, false),
      own(apart_from_others, 2, false);
  CHECK(apart(halves.file_of(0), whole.file_of(0)).share() <= 1e-4);
  CHECK(apart(halves.file_of(1), halves.file_of(0)).difference == 0);
  CHECK(apart(own.file_of(0), whole.file_of(0)).share() > 1e-3);
}

Training in_narrow_type(DType type) {
  Training training = kLenet;
  training.strategy.amp = true;
  training.strategy.sync_nccl_allreduce = false;
  training.strategy.amp_configs.dtype = type == DType::f16 ? job::AmpType::fp16 : job::AmpType::bf16;
  training.strategy.amp_configs.decr_every_n_nan_or_inf = 1;
  return training;
}

TEST_CASE("two ranks that train in a narrow type hold the same parameters, near those of f32") {
  const Trained wide(kLenet, 2, false);
  for (const DType type : narrow_types()) {
    CAPTURE(describe(type));
    const Trained narrow(in_narrow_type(type), 2, false);
    CHECK(apart(narrow.file_of(1), narrow.file_of(0)).difference == 0);
    const double share = apart(narrow.file_of(0), wide.file_of(0)).share();
    CAPTURE(share);
    CHECK(share > 0);
    CHECK(share < 0.02);
  }
}

bool records_steps() {
  const auto device = test::make_test_device();
  return device->streams() != nullptr && device->streams()->can_record();
}

// How often the device repeats the steps of each of two ranks, and the weights of both after them.
struct Repeated {
  std::int64_t replays = 0;
  std::string weights;
};
Repeated repeated(const Training& training, const std::map<std::string, std::string>& of_rank_1) {
  const TemporaryFolder folder;
  ProcessWorld world(2, [&](comm::World& ranks) {
    if (ranks.env.rank == 1)
      for (const auto& [name, value] : of_rank_1) ::setenv(name.c_str(), value.c_str(), 1);
    const std::string rank = std::to_string(ranks.env.rank);
    folder.write(rank + ".replays", std::to_string(train(ranks, false, training, folder / rank)));
  });
  wait_for_all(world, 2);
  CHECK(folder.read("0.replays") == folder.read("1.replays"));
  return {std::stoll(folder.read("0.replays")), folder.read("0") + folder.read("1")};
}

TEST_CASE(
    "two ranks repeat their steps with all collectives from recordings, and hold the bits of steps op by op") {
  if (!records_steps()) return;
  Training owners = kLenet, shards = kLenet, together = kResnet20;
  owners.strategy.build_strategy.reduce_strategy = job::ReduceStrategy::Reduce;
  shards.strategy.sharding = true;
  shards.strategy.sharding_configs.stage = 3;
  shards.strategy = job::settle_strategy(shards.strategy, {.all = 2, .of_node = 2, .gpu = true}).strategy;
  together.strategy.sync_batch_norm = true;
  for (Training training : {kLenet, in_narrow_type(DType::f16), owners, shards, together}) {
    training.strategy.sync_nccl_allreduce = false;
    const Repeated both = repeated(training, {});
    // The feeds alternate between two places, and the activation memory may move once.
    CHECK(both.replays >= kSteps - 4);
    ::setenv("FLEETRUN_CUDA_GRAPHS", "0", 1);
    const Repeated without = repeated(training, {});
    ::unsetenv("FLEETRUN_CUDA_GRAPHS");
    CHECK(without.replays == 0);
    CHECK(both.weights == without.weights);
  }
}

TEST_CASE("if one of two ranks does not record its steps, neither does") {
  if (!records_steps()) return;
  Training training = kLenet;
  training.strategy.sync_nccl_allreduce = false;
  CHECK(repeated(training, {{"FLEETRUN_CUDA_GRAPHS", "0"}}).replays == 0);
  CHECK(repeated(training, {{"FLEETRUN_ON_HOST_REFUSE_GRAPHS", "1"}}).replays == 0);
}

// What rank 0 of two says when rank 1 ends before a step.
std::string said_when_rank_1_ends_in(int step) {
  Training training = kLenet;
  training.strategy.sync_nccl_allreduce = false;
  training.strategy.fuse_all_reduce_ops = false;  // several collectives in a step
  training.ends_in = step;
  const TemporaryFolder folder;
  ProcessWorld world(2, [&](comm::World& ranks) {
    try {
      train(ranks, false, training, folder / "weights");
    } catch (const Error& error) {
      folder.write("said", error.message());
      // As a worker does. Its device has ended before the communicators, so nobody may destroy them.
      ::_exit(0);
    }
  });
  wait_for_all(world, 2);
  return folder.read("said");
}

TEST_CASE("a rank that is gone is named by one that repeats recorded steps") {
  if (!records_steps()) return;
  const std::string said = said_when_rank_1_ends_in(8);
  CHECK_MESSAGE(said.find("of a repeated step, the last one ") != std::string::npos, said);
  CHECK_MESSAGE(said.find("waited for rank 1") != std::string::npos, said);
}

// With two places of the feeds, steps 2 and 3 are recorded.
TEST_CASE("a rank that is gone is named by one that records a step") {
  if (!records_steps()) return;
  for (const int step : {2, 3}) {
    const std::string said = said_when_rank_1_ends_in(step);
    CHECK_MESSAGE(said.find("waited for rank 1") != std::string::npos, said);
  }
}

TEST_CASE("after an overflow on one rank of two, neither moves its parameters") {
  for (const DType type : narrow_types()) {
    CAPTURE(describe(type));
    Training shorter = in_narrow_type(type);
    shorter.optimizer = job::OptimizerName::sgd;  // which moves nothing when the gradients are 0
    shorter.steps = 3;
    Training overflowing = shorter;
    overflowing.steps = 4;
    overflowing.overflow_in = 3;
    const Trained with(overflowing, 2, false), without(shorter, 2, false);
    CHECK(apart(with.file_of(1), with.file_of(0)).difference == 0);
    CHECK(apart(with.file_of(0), without.file_of(0)).difference == 0);  // NaN if a parameter is not finite
  }
}

TEST_CASE("other steps lead elsewhere, farther than the CPU's ranks are from those of another device") {
  for (const Training& training : {kLenet, kResnet20}) {
    Training other = training;
    other.learning_rate *= 1.5;
    CHECK(apart(Trained(training, 2, true).file_of(0), Trained(other, 2, true).file_of(0)).share() > 1e-3);
  }
}

}  // namespace
}  // namespace fleetrun::runtime::ranks_test
