// Places blocks that live from one op to another into one arena, so that blocks that are alive at the same
// time never overlap. Largest first, each at the lowest offset that is free during its life (Pisarchyk and
// Lee 2020, arXiv:2001.03288, "greedy by size").
#pragma once
#include <cstddef>
#include <vector>

namespace fleetrun::runtime {

struct Block {
  std::size_t bytes = 0;
  int first = 0;  // the op that writes it first
  int last = 0;   // the op that uses it last, included
};

struct MemoryPlan {
  std::vector<std::size_t> offsets;  // by block, multiples of kArenaAlignment
  std::size_t bytes = 0;             // of the arena
  std::size_t unshared_bytes = 0;    // what separate blocks would take
};

constexpr std::size_t kArenaAlignment = 64;  // one cache line, and the widest vector register

constexpr std::size_t aligned(std::size_t bytes, std::size_t alignment = kArenaAlignment) {
  return (bytes + alignment - 1) / alignment * alignment;
}

MemoryPlan plan_memory(const std::vector<Block>& blocks);

}  // namespace fleetrun::runtime
