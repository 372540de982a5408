// How a training uses its communicators: which all-reduce goes where, on which thread, and what runs meanwhile.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <latch>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/error/error.h"
#include "comm/collective/collective_communicator.h"
#include "runtime/kernels/device.h"
#include "runtime/training/trainer/trainer.h"

namespace fleetrun::runtime::collectives_test {
namespace {

constexpr int kBatch = 4;
constexpr ModelFacts kFacts = {.input_shape = {1, 4, 4}, .classes = 3};

// Rank 0 of two as one communicator sees it; what an all-reduce does is the test's.
class Scripted : public comm::CollectiveCommunicator {
 public:
  using Script = std::function<void(Scripted&, BufferView)>;
  explicit Scripted(Script script) : CollectiveCommunicator(0, 2), script_(std::move(script)) {}
  using CollectiveCommunicator::tell_of_sleep;

  std::vector<std::size_t> counts;    // of elements, one for each all-reduce
  std::set<std::thread::id> threads;  // that called

 private:
  void run(const comm::Collective& collective, std::uint64_t) override {
    if (collective.kind != comm::Collective::Kind::all_reduce) return;
    counts.push_back(collective.buffer.count);
    threads.insert(std::this_thread::get_id());
    if (script_) script_(*this, collective.buffer);
  }
  const Script script_;
};

// A training of a small mlp with three layers, so six all-reduces a step.
class Training {
 public:
  Training(int communicators, bool sync, const Scripted::Script& script = nullptr)
      : device_(make_cpu_device()) {
    job::JobSpec job;
    job.model.name = job::ModelName::mlp;
    job.model.hidden = {6, 5};
    job.optimizer.name = job::OptimizerName::sgd;
    job.data.batch_size = kBatch;
    job.strategy.nccl_comm_num = communicators;
    job.strategy.sync_nccl_allreduce = sync;
    job.strategy.fuse_all_reduce_ops = false;
    std::vector<comm::Communicator*> of_gradients;
    for (int i = 0; i < communicators; ++i) {
      gradients.push_back(std::make_unique<Scripted>(script));
      of_gradients.push_back(gradients.back().get());
    }
    trainer_ = std::make_unique<Trainer>(job, kFacts, *device_, Communicators(flat, of_gradients));
  }
  std::vector<float> parameter() const { return trainer_->storage().read(first_parameter()); }
  void step() { trainer_->step({images_.data(), labels_.data()}, 0.1); }

  // Elements of the gradients, in the order in which the backward pass makes them.
  std::vector<std::size_t> gradient_counts() const {
    std::vector<std::size_t> counts;
    const Program& program = trainer_->executor().program();
    for (const Op& op : program.ops)
      if (op.role == Role::communication)
        counts.push_back(program.value(op.inputs[0]).bytes() / sizeof(float));
    return counts;
  }

  std::string first_parameter() const {
    const Program& program = trainer_->executor().program();
    return program.value(program.of_kind(ValueKind::parameter).front()).name;
  }

  Scripted flat{nullptr};
  std::vector<std::unique_ptr<Scripted>> gradients;

 private:
  std::unique_ptr<Device> device_;
  std::vector<float> images_ = std::vector<float>(kBatch * 16, 0.5F);
  std::vector<std::int32_t> labels_ = std::vector<std::int32_t>(kBatch);
  std::unique_ptr<Trainer> trainer_;
};

TEST_CASE("nccl_comm_num: all-reduce number i of a step goes by communicator i modulo their number") {
  for (const bool sync : {true, false})
    for (const int communicators : {1, 2, 4}) {
      Training training(communicators, sync);
      for (int step = 0; step < 2; ++step) training.step();
      const std::vector<std::size_t> made = training.gradient_counts();
      REQUIRE(made.size() == 6);
      for (int i = 0; i < communicators; ++i) {
        std::vector<std::size_t> dealt;
        for (int step = 0; step < 2; ++step)
          for (std::size_t number = static_cast<std::size_t>(i); number < made.size();
               number += static_cast<std::size_t>(communicators))
            dealt.push_back(made[number]);
        CAPTURE(communicators);
        CHECK(training.gradients[static_cast<std::size_t>(i)]->counts == dealt);
      }
      CHECK(training.flat.counts.empty());
    }
}

TEST_CASE(
    "sync_nccl_allreduce true: an all-reduce holds the thread that runs the ops, and nothing runs meanwhile") {
  std::atomic<int> under_way{0}, most{0};
  Training training(2, true, [&](Scripted&, BufferView) {
    most = std::max(most.load(), ++under_way);
    --under_way;
  });
  for (int step = 0; step < 3; ++step) training.step();
  for (const auto& communicator : training.gradients)
    CHECK(communicator->threads == std::set<std::thread::id>{std::this_thread::get_id()});
  CHECK(most == 1);
}

// The all-reduces of the last layer (0, 1) and of the one before (2) are under way at once: so the backward pass went on
// while the first was. It would hang if not.
TEST_CASE(
    "sync_nccl_allreduce false: all-reduces run on their communicators' threads beside the backward pass") {
  std::latch three_under_way(3);
  Training training(3, false, [&](Scripted& communicator, BufferView) {
    if (communicator.counts.size() == 1) three_under_way.arrive_and_wait();
  });
  for (int step = 0; step < 3; ++step) training.step();
  std::set<std::thread::id> all = {std::this_thread::get_id()};
  for (const auto& communicator : training.gradients) {
    CHECK(communicator->threads.size() == 1);
    all.insert(communicator->threads.begin(), communicator->threads.end());
  }
  CHECK(all.size() == 4);
}

TEST_CASE("with one communicator no two all-reduces are under way, with two there are two") {
  for (const int communicators : {1, 2}) {
    std::atomic<int> under_way{0}, most{0};
    std::latch all_under_way(communicators);
    Training training(communicators, false, [&](Scripted& communicator, BufferView) {
      most = std::max(most.load(), ++under_way);
      if (communicator.counts.size() == 1) all_under_way.arrive_and_wait();
      --under_way;
    });
    for (int step = 0; step < 5; ++step) training.step();
    CHECK(most == communicators);
  }
}

// There are nccl_comm_num + 1 threads for the ops: while each communicator holds one that sleeps, one is left.
TEST_CASE("sync_nccl_allreduce true: others work for threads whose all-reduce sleeps") {
  std::latch three_under_way(3);
  Training training(3, true, [&](Scripted& communicator, BufferView) {
    if (communicator.counts.size() > 1) return;
    communicator.tell_of_sleep();
    three_under_way.arrive_and_wait();
  });
  for (int step = 0; step < 3; ++step) training.step();
  for (const auto& communicator : training.gradients) CHECK(communicator->counts.size() == 6);
}

TEST_CASE("the update of a parameter waits for its all-reduce") {
  for (const bool sync : {true, false}) {
    // What the "other rank" adds makes every gradient 7, so that sgd moves every parameter alike.
    Training training(
        2, sync, [](Scripted&, BufferView buffer) { std::fill_n(buffer.as<float>(), buffer.count, 7.0F); });
    const std::vector<float> before = training.parameter();
    training.step();
    const std::vector<float> after = training.parameter();
    for (std::size_t i = 0; i < before.size(); ++i) CHECK(after[i] == doctest::Approx(before[i] - 0.1F * 7));
  }
}

TEST_CASE("the error of an all-reduce ends the step, whatever thread it was on") {
  for (const bool sync : {true, false}) {
    Training training(2, sync, [](Scripted& communicator, BufferView) {
      if (communicator.counts.size() == 2) throw Error(ErrorKind::temporary, "rank 1 is gone");
    });
    CHECK_THROWS_WITH_AS(training.step(), "rank 1 is gone", Error);
  }
}

}  // namespace
}  // namespace fleetrun::runtime::collectives_test
