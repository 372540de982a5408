#include "cuda/logic/memory_pool.h"

#include <doctest/doctest.h>

#include <random>
#include <vector>

#include "base/error/error.h"

namespace fleetrun::cuda::memory_pool_test {
namespace {

TEST_CASE("pieces are aligned, lie beside each other and end where the pool ends") {
  MemoryPool pool(4 * kPoolAlignment + 17);
  CHECK(pool.largest_free() == 4 * kPoolAlignment);
  CHECK(pool.take(1) == 0);
  CHECK(pool.take(0) == kPoolAlignment);
  CHECK(pool.take(kPoolAlignment + 1) == 2 * kPoolAlignment);
  CHECK_FALSE(pool.take(1));
}

TEST_CASE("what is given back becomes one piece with what is free beside it") {
  MemoryPool pool(4 * kPoolAlignment);
  for (std::size_t i = 0; i < 4; ++i) REQUIRE(pool.take(kPoolAlignment) == i * kPoolAlignment);
  pool.give_back(0);
  pool.give_back(2 * kPoolAlignment);
  CHECK(pool.largest_free() == kPoolAlignment);
  pool.give_back(kPoolAlignment);
  CHECK(pool.largest_free() == 3 * kPoolAlignment);
  pool.give_back(3 * kPoolAlignment);
  CHECK(pool.take(4 * kPoolAlignment) == 0);
}

TEST_CASE("giving back what was not taken is reported as a bug") {
  MemoryPool pool(4 * kPoolAlignment);
  CHECK_THROWS_WITH_AS(pool.give_back(256), "offset 256 of a memory pool is given back, but was not taken",
                       Error);
}

TEST_CASE("after any order of taking and giving back the pool is whole again") {
  constexpr std::size_t kPieces = 64;
  MemoryPool pool(kPieces * kPoolAlignment);
  std::mt19937 random(1);
  std::vector<std::size_t> taken;
  for (int i = 0; i < 5000; ++i) {
    if (random() % 2 == 0) {
      if (const auto offset = pool.take(random() % (4 * kPoolAlignment))) taken.push_back(*offset);
    } else if (!taken.empty()) {
      const std::size_t which = random() % taken.size();
      pool.give_back(taken[which]);
      taken.erase(taken.begin() + static_cast<std::ptrdiff_t>(which));
    }
  }
  for (const std::size_t offset : taken) pool.give_back(offset);
  CHECK(pool.largest_free() == kPieces * kPoolAlignment);
}

}  // namespace
}  // namespace fleetrun::cuda::memory_pool_test
