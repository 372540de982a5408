#include "runtime/exec/memory_plan.h"

#include <algorithm>
#include <numeric>

namespace fleetrun::runtime {
namespace {

bool alive_together(const Block& a, const Block& b) { return a.first <= b.last && b.first <= a.last; }

// The lowest offset at which `bytes` fit beside the taken intervals, which are sorted by begin.
std::size_t lowest_gap(const std::vector<std::pair<std::size_t, std::size_t>>& taken, std::size_t bytes) {
  std::size_t offset = 0;
  for (const auto& [begin, end] : taken) {
    if (begin >= offset + bytes) break;
    offset = std::max(offset, end);
  }
  return offset;
}

}  // namespace

MemoryPlan plan_memory(const std::vector<Block>& blocks) {
  std::vector<std::size_t> order(blocks.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return blocks[a].bytes > blocks[b].bytes; });

  MemoryPlan plan;
  plan.offsets.resize(blocks.size());
  std::vector<std::size_t> placed;
  for (const std::size_t block : order) {
    if (blocks[block].bytes == 0) break;  // so have all that follow, and they need no place
    std::vector<std::pair<std::size_t, std::size_t>> taken;
    for (const std::size_t other : placed)
      if (alive_together(blocks[block], blocks[other]))
        taken.emplace_back(plan.offsets[other], plan.offsets[other] + aligned(blocks[other].bytes));
    std::sort(taken.begin(), taken.end());
    plan.offsets[block] = lowest_gap(taken, aligned(blocks[block].bytes));
    plan.bytes = std::max(plan.bytes, plan.offsets[block] + aligned(blocks[block].bytes));
    plan.unshared_bytes += aligned(blocks[block].bytes);
    placed.push_back(block);
  }
  return plan;
}

}  // namespace fleetrun::runtime
