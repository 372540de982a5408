#include "runtime/training/ranks/agreement.h"

#include <doctest/doctest.h>

#include <atomic>
#include <memory>

#include "base/error/error.h"
#include "comm/rendezvous/memory_store.h"
#include "support/run_world.h"
#include "support/shared_store.h"

namespace fleetrun::runtime::agreement_test {
namespace {

// A rank's view of a world that meets in `store`; communicators are not needed to agree.
comm::World world_of(comm::Store& store, int rank, int size) {
  comm::World world;
  world.env.rank = rank;
  world.env.world_size = size;
  world.store = std::make_unique<testing::SharedStore>(store);
  return world;
}

TEST_CASE("ranks with one program agree") {
  comm::MemoryStore store;
  const auto device = make_cpu_device();
  CHECK_NOTHROW(testing::run_ranks(
      3, [&](int rank) { agree_on_program(world_of(store, rank, 3), *device, "the same"); }));
}

TEST_CASE("ranks with different programs all stop and say which line differs, and how") {
  const auto device = make_cpu_device();
  const auto refusals_of = [&](const std::string& of_rank_1, const std::string& words) {
    comm::MemoryStore store;
    std::atomic<int> refusals = 0;
    testing::run_ranks(2, [&](int rank) {
      try {
        agree_on_program(world_of(store, rank, 2), *device, rank == 0 ? "image\nfc 8\nloss\n" : of_rank_1);
      } catch (const Error& error) {
        if (error.kind() == ErrorKind::protocol && error.message() == words) ++refusals;
      }
    });
    return refusals.load();
  };
  CHECK(refusals_of("image\nfc 9\nloss\n",
                    "ranks differ in program line 2: rank 0 has fc 8, rank 1 has fc 9") == 2);
  CHECK(refusals_of("image\nfc 8\n",
                    "ranks differ in fact 3: rank 0 has program line 3 loss, rank 1 has no such fact") == 2);
}

TEST_CASE("programs that differ after the part that is sent are recognised by their hashes") {
  const auto device = make_cpu_device();
  comm::MemoryStore store;
  std::atomic<int> refusals = 0;
  testing::run_ranks(2, [&](int rank) {
    try {
      agree_on_program(world_of(store, rank, 2), *device, std::string(300'000, 'x') + std::to_string(rank));
    } catch (const Error& error) {
      if (error.message().starts_with("ranks differ in program: rank 0 has ")) ++refusals;
    }
  });
  CHECK(refusals.load() == 2);
}

TEST_CASE("ranks settle on one instruction set and get their device") {
  comm::MemoryStore store;
  std::atomic<int> devices = 0;
  testing::run_ranks(2, [&](int rank) {
    if (make_agreed_device(world_of(store, rank, 2)) != nullptr) ++devices;
  });
  CHECK(devices == 2);
}

TEST_CASE("a device of no known kind is refused") {
  comm::World world;
  world.env.device = "tpu:0";
  CHECK_THROWS_WITH_AS(make_agreed_device(world), "device is \"tpu:0\", must be cpu or cuda:INDEX", Error);
}

}  // namespace
}  // namespace fleetrun::runtime::agreement_test
