// In a steady state a collective allocates nothing on the thread that calls it.
#include <doctest/doctest.h>

#include <cstdint>
#include <new>
#include <stdexcept>
#include <vector>

#include "comm/collective/solo.h"
#include "comm/gloo/gloo.h"
#include "comm/rendezvous/memory_store.h"
#include "comm/shared/shared_memory.h"
#include "support/allocation_count.h"
#include "support/run_world.h"

namespace fleetrun::comm::collectives_alloc_test {
namespace {

std::int64_t allocations_of_all_collectives(Communicator& comm) {
  const auto ranks = static_cast<std::size_t>(comm.size());
  std::vector<float> all(1000 * ranks);
  std::vector<float> mine(1000);
  const std::int64_t before = allocations_of_this_thread();
  for (int i = 0; i < 10; ++i) {
    comm.all_reduce({all.data(), all.size(), DType::f32}, ReduceOp::sum);
    comm.broadcast({all.data(), all.size(), DType::f32}, 0);
    comm.reduce_scatter({all.data(), all.size(), DType::f32}, {mine.data(), 1000, DType::f32}, ReduceOp::sum);
    comm.all_gather({mine.data(), 1000, DType::f32}, {all.data(), all.size(), DType::f32});
    comm.barrier();
  }
  return allocations_of_this_thread() - before;
}

void check_none(Communicator& comm) {
  if (allocations_of_all_collectives(comm) != 0)
    throw std::runtime_error("a collective allocated on its caller's thread");
}

TEST_CASE("allocations are counted") {
  const std::int64_t before = allocations_of_this_thread();
  ::operator delete(::operator new(1));  // a new expression may be optimised away
  CHECK(allocations_of_this_thread() - before == 1);
}

TEST_CASE("solo: a collective allocates nothing") { check_none(*make_solo()); }

TEST_CASE("gloo: a collective allocates nothing on the thread that calls it") {
  MemoryStore store;
  const RunKey key = make_run_key();
  testing::run_world(
      2,
      [&](int rank) {
        return make_gloo({.party = {store, rank, 2}, .key = key});
      },
      check_none);
}

TEST_CASE("shared memory: a collective allocates nothing") {
  MemoryStore store;
  testing::run_world(
      2,
      [&](int rank) {
        return join_shared_memory({.party = {store, rank, 2}}).communicator;
      },
      check_none);
}

}  // namespace
}  // namespace fleetrun::comm::collectives_alloc_test
