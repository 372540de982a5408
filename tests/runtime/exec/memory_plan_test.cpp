#include "runtime/exec/memory_plan.h"

#include <doctest/doctest.h>

#include <random>

namespace fleetrun::runtime::memory_plan_test {
namespace {

bool overlap(const MemoryPlan& plan, const std::vector<Block>& blocks, std::size_t a, std::size_t b) {
  const bool in_time = blocks[a].first <= blocks[b].last && blocks[b].first <= blocks[a].last;
  const bool in_space = plan.offsets[a] < plan.offsets[b] + blocks[b].bytes &&
                        plan.offsets[b] < plan.offsets[a] + blocks[a].bytes;
  return in_time && in_space;
}

TEST_CASE("blocks that live one after the other share memory") {
  const MemoryPlan plan = plan_memory({{1024, 0, 1}, {1024, 2, 3}});
  CHECK(plan.offsets == std::vector<std::size_t>{0, 0});
  CHECK(plan.bytes == 1024);
  CHECK(plan.unshared_bytes == 2048);
}

TEST_CASE("a block read by the op that writes another does not share with it") {
  const MemoryPlan plan = plan_memory({{64, 0, 1}, {64, 1, 2}});
  CHECK(plan.bytes == 128);
}

TEST_CASE("a small block goes into the gap that a large one left") {
  const MemoryPlan plan = plan_memory({{1000, 0, 4}, {100, 1, 2}, {100, 3, 4}});
  CHECK(plan.bytes == 1024 + 128);
}

TEST_CASE("offsets are aligned to a cache line") {
  const MemoryPlan plan = plan_memory({{1, 0, 9}, {1, 0, 9}, {65, 0, 9}});
  for (const std::size_t offset : plan.offsets) CHECK(offset % kArenaAlignment == 0);
  CHECK(plan.bytes == 128 + 64 + 64);
}

TEST_CASE("no plan of random lives lets two living blocks overlap") {
  std::mt19937 random(7);
  for (int round = 0; round < 50; ++round) {
    std::vector<Block> blocks(60);
    for (Block& block : blocks) {
      block.first = static_cast<int>(random() % 40);
      block.last = block.first + static_cast<int>(random() % 10);
      block.bytes = random() % 5000;
    }
    const MemoryPlan plan = plan_memory(blocks);
    for (std::size_t a = 0; a < blocks.size(); ++a)
      for (std::size_t b = a + 1; b < blocks.size(); ++b) REQUIRE_FALSE(overlap(plan, blocks, a, b));
  }
}

}  // namespace
}  // namespace fleetrun::runtime::memory_plan_test
