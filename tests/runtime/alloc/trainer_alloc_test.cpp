// After warm-up a training step allocates nothing, not by malloc, not by operator new, and makes no primitive.
#include <doctest/doctest.h>

#include <atomic>
#include <barrier>
#include <memory>

#include "comm/collective/hierarchical.h"
#include "comm/collective/solo.h"
#include "comm/gloo/gloo.h"
#include "comm/rendezvous/memory_store.h"
#include "comm/shared/shared_memory.h"
#include "runtime/kernels/device.h"
#include "runtime/training/trainer/trainer.h"
#include "support/counting_malloc.h"
#include "support/counting_primitives.h"
#include "support/run_world.h"

namespace fleetrun::runtime::trainer_alloc_test {
namespace {

constexpr int kRanks = 2;
constexpr int kBatch = 8;
constexpr ModelFacts kFacts = {.input_shape = {3, 16, 16}, .classes = 10};

job::JobSpec job_of(job::ModelName model, int ops_in_flight) {
  job::JobSpec job;
  job.model.name = model;
  job.model.dropout = 0.5;
  job.data.batch_size = kBatch;
  job.strategy.execution_strategy.num_threads = ops_in_flight;
  job.strategy.execution_strategy.num_iteration_per_drop_scope = 0;
  // oneDNN's Winograd changes its number of threads inside a step, for which GNU OpenMP allocates; a search may choose it.
  job.strategy.cudnn_exhaustive_search = false;
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

// What all threads of two ranks do in steps 10 to 20.
struct Made {
  long allocations = 0;
  long primitives = 0;
};

Made made_after_warm_up(const testing::MakeCommunicator& make, const job::JobSpec& job) {
  Made made = {-1, -1};
  std::barrier together(kRanks);
  testing::run_world(kRanks, make, [&](comm::Communicator& communicator) {
    const auto device = make_cpu_device();
    Trainer trainer(job, kFacts, *device, communicator);
    trainer.share_parameters();
    const Data data;
    run_steps(trainer, data, 1, 9);
    together.arrive_and_wait();
    std::unique_ptr<test::AllocationCount> count;
    const long primitives = test::primitives_made();
    if (communicator.rank() == 0) count = std::make_unique<test::AllocationCount>();
    together.arrive_and_wait();
    run_steps(trainer, data, 10, 20);
    together.arrive_and_wait();
    if (communicator.rank() == 0) made = {count->so_far(), test::primitives_made() - primitives};
    together.arrive_and_wait();
  });
  return made;
}

TEST_CASE(
    "steps 10 to 20 allocate nothing and make no primitive, on any thread, with one op in flight and with three") {
  for (const job::ModelName model : {job::ModelName::lenet, job::ModelName::resnet20})
    for (const int ops_in_flight : {1, 3}) {
      const long before = test::primitives_made();
      auto world = comm::make_thread_world(kRanks);
      const auto make = [&](int rank) { return std::move(world[static_cast<std::size_t>(rank)]); };
      const Made made = made_after_warm_up(make, job_of(model, ops_in_flight));
      CAPTURE(ops_in_flight);
      CHECK(made.allocations == 0);
      CHECK(made.primitives == 0);
      CHECK(test::primitives_made() > before + 10);  // those of the warm-up: the counter counts
    }
}

TEST_CASE(
    "steps of which a trace is made allocate nothing once it is open, and those of a closed one nothing") {
  auto world = comm::make_thread_world(kRanks);
  testing::run_world(
      kRanks, [&](int rank) { return std::move(world[static_cast<std::size_t>(rank)]); },
      [&](comm::Communicator& communicator) {
        const auto device = make_cpu_device();
        Timeline timeline;
        Trainer trainer(job_of(job::ModelName::lenet, 1), kFacts, *device, communicator,
                        {.timeline = &timeline});
        trainer.share_parameters();
        const Data data;
        run_steps(trainer, data, 1, 9);
        const long closed = test::allocations_of_this_thread();
        run_steps(trainer, data, 10, 14);
        CHECK(test::allocations_of_this_thread() == closed);
        timeline.open(10'000);
        const long open = test::allocations_of_this_thread();
        run_steps(trainer, data, 15, 20);
        CHECK(test::allocations_of_this_thread() == open);
        timeline.close();
        CHECK(timeline.spans().size() == 6 * trainer.executor().program().ops.size());
      });
}

TEST_CASE("steps 10 to 20 in bf16 and with recompute allocate nothing and make no primitive") {
  for (const bool amp : {false, true}) {
    if (amp && make_cpu_device()->narrow_types().empty()) continue;  // this processor computes in f32 only
    job::JobSpec job = job_of(job::ModelName::resnet20, 1);
    job.strategy.amp = amp;
    job.strategy.recompute = true;
    auto world = comm::make_thread_world(kRanks);
    const auto make = [&](int rank) { return std::move(world[static_cast<std::size_t>(rank)]); };
    const Made made = made_after_warm_up(make, job);
    CAPTURE(amp);
    CHECK(made.allocations == 0);
    CHECK(made.primitives == 0);
  }
}

TEST_CASE("steps 10 to 20 over shared memory allocate nothing on any thread") {
  for (const int ops_in_flight : {1, 3}) {
    comm::MemoryStore store;
    const auto make = [&](int rank) {
      return comm::join_shared_memory({.party = {store, rank, kRanks}}).communicator;
    };
    CAPTURE(ops_in_flight);
    CHECK(made_after_warm_up(make, job_of(job::ModelName::lenet, ops_in_flight)).allocations == 0);
  }
}

TEST_CASE(
    "steps 10 to 20 with all-reduces beside the backward pass, in groups, allocate nothing on any thread") {
  comm::MemoryStore store;
  const auto make = [&](int rank) {
    const comm::Party all = {store, rank, kRanks};
    const auto segments = comm::join_shared_memory({.party = all}).segments;
    return comm::make_hierarchical(
        {.party = all, .group_size = kRanks}, [&](const comm::Party& party, const std::string& name) {
          return party.size == 1 ? comm::make_solo()
                                 : comm::make_shared_memory({.party = party, .name = name}, segments);
        });
  };
  job::JobSpec job = job_of(job::ModelName::lenet, 1);
  job.strategy.sync_nccl_allreduce = false;
  CHECK(made_after_warm_up(make, job).allocations == 0);
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
        Trainer trainer(job_of(job::ModelName::lenet, 1), kFacts, *device, communicator);
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
}  // namespace fleetrun::runtime::trainer_alloc_test
