#include "runtime/training/ranks/replicas.h"

#include <doctest/doctest.h>

#include <atomic>
#include <string>
#include <vector>

#include "base/error/error.h"
#include "comm/rendezvous/memory_store.h"
#include "runtime/tensor/philox.h"
#include "runtime/training/trainer/trainer.h"
#include "support/run_world.h"
#include "support/test_device.h"

namespace fleetrun::runtime::replicas_test {
namespace {

TEST_CASE("equal fingerprints have no difference") {
  CHECK_FALSE(find_difference({7}));
  CHECK_FALSE(find_difference({7, 7, 7, 7}));
}

TEST_CASE("the rank that is not like the majority is named") {
  CHECK(find_difference({7, 7, 8}) == "the weights of rank 2 differ from those of the other ranks");
  CHECK(find_difference({9, 7, 7, 8, 7}) == "the weights of ranks 0, 3 differ from those of the other ranks");
}

TEST_CASE("of two, or two halves, nobody can say whose are wrong: both are named") {
  CHECK(
      find_difference({8, 7}) ==
      "the weights of the ranks differ, and no majority tells whose are wrong: rank 1 has 0000000000000007, rank 0 has 0000000000000008");
  CHECK(
      find_difference({8, 7, 7, 8}) ==
      "the weights of the ranks differ, and no majority tells whose are wrong: ranks 1, 2 have 0000000000000007, "
      "ranks 0, 3 have 0000000000000008");
}

constexpr int kBatch = 4;
constexpr ModelFacts kFacts = {.input_shape = {1, 6, 6}, .classes = 3};

job::JobSpec small_job() {
  job::JobSpec job;
  job.model.hidden = {8};
  job.data.batch_size = kBatch;
  return job;
}

// Each rank has samples of its own.
void take_step(Trainer& trainer, int rank, int step) {
  std::vector<float> images(kBatch * 36);
  for (std::size_t i = 0; i < images.size(); ++i)
    images[i] = unit_float(philox(5, static_cast<std::uint64_t>(100 * rank + step), i)[0]);
  const std::vector<std::int32_t> labels = {0, 1, 2, 0};
  trainer.step({images.data(), labels.data()}, 0.1);
}

// Changes the lowest bit of one weight, as bad memory would.
void flip_a_bit(Trainer& trainer) {
  const std::string name = "f2.weight";
  auto weights = trainer.storage().read(name);
  reinterpret_cast<unsigned char*>(&weights[5])[0] ^= 1U;
  const_cast<Storage&>(trainer.storage()).write(name, weights);
}

TEST_CASE(
    "W18: replicas that train stay equal, and one flipped bit is noticed by every rank at the next look") {
  std::atomic<int> told = 0;
  comm::MemoryStore store;
  testing::run_world(3, [&](comm::Communicator& all_ranks) {
    const auto device = test::make_test_device();
    const auto of_device = device->make_communicator({store, all_ranks.rank(), 3}, 0);
    Trainer trainer(small_job(), kFacts, *device, of_device ? *of_device : all_ranks);
    trainer.share_parameters();
    const auto look = [&](int step) { check_replicas(trainer.storage().fingerprint(), step, all_ranks); };
    std::uint64_t before = trainer.storage().fingerprint();
    for (int step = 1; step <= 5; ++step) {
      take_step(trainer, all_ranks.rank(), step);
      look(step);
      if (trainer.storage().fingerprint() == before) throw std::runtime_error("training moved nothing");
      before = trainer.storage().fingerprint();
    }
    if (all_ranks.rank() == 1) flip_a_bit(trainer);
    take_step(trainer, all_ranks.rank(), 6);
    try {
      look(6);
    } catch (const Error& error) {
      if (error.exit_code() == 81 &&
          error.message() == "after step 6 the weights of rank 1 differ from those of the other ranks")
        ++told;
    }
  });
  CHECK(told == 3);
}

}  // namespace
}  // namespace fleetrun::runtime::replicas_test
