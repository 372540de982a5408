// In a steady state a collective allocates nothing on the thread that calls it.
#include <doctest/doctest.h>

#include <cstdlib>
#include <new>
#include <vector>

#include "comm/gloo.h"
#include "comm/memory_store.h"
#include "comm/shared_memory.h"
#include "comm/solo.h"
#include "support/run_world.h"

namespace {

thread_local std::uint64_t allocations = 0;

void* counted(std::size_t bytes) {
  ++allocations;
  if (void* memory = std::malloc(bytes)) return memory;
  throw std::bad_alloc();
}

}  // namespace

// Not inlined: the compiler would find new and free in one function, and warn.
[[gnu::noinline]] void* operator new(std::size_t bytes) { return counted(bytes); }
[[gnu::noinline]] void* operator new[](std::size_t bytes) { return counted(bytes); }
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete[](void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }

namespace fleetrun::comm::no_allocation_test {
namespace {

std::uint64_t allocations_of_all_collectives(Communicator& comm) {
  const auto ranks = static_cast<std::size_t>(comm.size());
  std::vector<float> all(1000 * ranks);
  std::vector<float> mine(1000);
  const std::uint64_t before = allocations;
  for (int i = 0; i < 10; ++i) {
    comm.all_reduce({all.data(), all.size(), DType::f32}, ReduceOp::sum);
    comm.broadcast({all.data(), all.size(), DType::f32}, 0);
    comm.reduce_scatter({all.data(), all.size(), DType::f32}, {mine.data(), 1000, DType::f32}, ReduceOp::sum);
    comm.all_gather({mine.data(), 1000, DType::f32}, {all.data(), all.size(), DType::f32});
    comm.barrier();
  }
  return allocations - before;
}

void check_none(Communicator& comm) {
  if (allocations_of_all_collectives(comm) != 0)
    throw std::runtime_error("a collective allocated on its caller's thread");
}

TEST_CASE("allocations are counted") {
  const std::uint64_t before = allocations;
  ::operator delete(::operator new(1));  // a new expression may be optimised away
  CHECK(allocations - before == 1);
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
}  // namespace fleetrun::comm::no_allocation_test
