// After warm-up a training step allocates nothing: not by malloc, not by operator new.
#include <doctest/doctest.h>

#include <atomic>
#include <barrier>
#include <memory>

#include "comm/gloo.h"
#include "comm/memory_store.h"
#include "comm/shared_memory.h"
#include "runtime/kernels/device.h"
#include "runtime/trainer.h"
#include "support/counting_malloc.h"
#include "support/run_world.h"

namespace fleetrun::runtime {
namespace {

constexpr int kRanks = 2;
constexpr int kBatch = 8;
constexpr ModelFacts kFacts = {.input_shape = {3, 16, 16}, .classes = 10};

job::JobSpec lenet_job(int ops_in_flight) {
  job::JobSpec job;
  job.model.name = job::ModelName::lenet;
  job.model.dropout = 0.5;
  job.data.batch_size = kBatch;
  job.strategy.execution_strategy.num_threads = ops_in_flight;
  return job;
}

struct Data {
  std::vector<float> images = std::vector<float>(kBatch * 3 * 16 * 16, 0.5F);
  std::vector<std::int32_t> labels = std::vector<std::int32_t>(kBatch, 1);
  BatchView view() const { return {images.data(), labels.data()}; }
};

void run_steps(Trainer& trainer, const Data& data, int first, int last) {
  for (int step = first; step <= last; ++step) trainer.step(data.view(), 0.01);
}

// Of all threads of both ranks, in steps 10 to 20.
long allocations_of_steps(const testing::MakeCommunicator& make, int ops_in_flight) {
  std::atomic<long> allocations = -1;
  std::barrier together(kRanks);
  testing::run_world(kRanks, make, [&](comm::Communicator& communicator) {
    const auto device = make_cpu_device();
    Trainer trainer(lenet_job(ops_in_flight), kFacts, *device, communicator, 1);
    trainer.share_parameters();
    const Data data;
    run_steps(trainer, data, 1, 9);
    together.arrive_and_wait();
    std::unique_ptr<test::AllocationCount> count;
    if (communicator.rank() == 0) count = std::make_unique<test::AllocationCount>();
    together.arrive_and_wait();
    run_steps(trainer, data, 10, 20);
    together.arrive_and_wait();
    if (communicator.rank() == 0) allocations = count->so_far();
    together.arrive_and_wait();
  });
  return allocations;
}

TEST_CASE(
    "steps 10 to 20 of two ranks allocate nothing on any thread, with one op in flight and with three") {
  for (const int ops_in_flight : {1, 3}) {
    auto world = comm::make_thread_world(kRanks);
    const auto make = [&](int rank) { return std::move(world[static_cast<std::size_t>(rank)]); };
    CAPTURE(ops_in_flight);
    CHECK(allocations_of_steps(make, ops_in_flight) == 0);
  }
}

TEST_CASE("steps 10 to 20 over shared memory allocate nothing on any thread") {
  for (const int ops_in_flight : {1, 3}) {
    comm::MemoryStore store;
    const auto make = [&](int rank) {
      return comm::join_shared_memory({.party = {store, rank, kRanks}}).communicator;
    };
    CAPTURE(ops_in_flight);
    CHECK(allocations_of_steps(make, ops_in_flight) == 0);
  }
}

TEST_CASE("steps 10 to 20 over Gloo allocate nothing on the thread that runs the ops") {
  comm::MemoryStore store;
  const RunKey key = make_run_key();
  std::atomic<long> allocations = 0;
  testing::run_world(
      kRanks,
      [&](int rank) {
        return comm::make_gloo({.party = {store, rank, kRanks}, .key = key});
      },
      [&](comm::Communicator& communicator) {
        const auto device = make_cpu_device();
        Trainer trainer(lenet_job(1), kFacts, *device, communicator, 1);
        trainer.share_parameters();
        const Data data;
        run_steps(trainer, data, 1, 9);
        const long before = test::allocations_of_this_thread();
        run_steps(trainer, data, 10, 20);
        allocations += test::allocations_of_this_thread() - before;
      });
  CHECK(allocations.load() == 0);
}

}  // namespace
}  // namespace fleetrun::runtime
