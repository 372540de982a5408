// When each op may run and where its values lie: made once from a program, then only read.
#pragma once
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/exec/task_graph.h"
#include "runtime/graph/program.h"

namespace fleetrun::runtime {

// What an op asks of memory besides its values.
struct OpMemory {
  std::size_t scratch_bytes = 0;
  std::vector<std::pair<ValueId, ValueId>> may_share;  // (output, input): see OpDef::may_share
};

struct Schedule {
  TaskGraph graph;                                        // one task per op of the program
  std::vector<std::optional<std::size_t>> value_offsets;  // in the arena, by ValueId; none: lives elsewhere
  std::vector<std::size_t> scratch_offsets;               // in the arena, by OpId
  std::size_t arena_bytes = 0;
  std::size_t unshared_bytes = 0;  // what the arena would take if nothing shared memory
  int in_place_pairs = 0;          // outputs that took the place of an input
  std::vector<int> every;          // by OpId: it runs in the steps of which this is a divisor
};

// An op waits for the writers of what it reads or is to come after, for the readers of what it overwrites (values and reused
// memory alike), and a collective for the one before it on its communicator, which is its lane: so every rank
// issues them in one order.
// An output takes the place of an input where it may, both are activations of one size, this op is the
// input's last user and the input is not fetched. `memory` is by OpId.
Schedule plan_schedule(const Program& program, const std::vector<OpMemory>& memory);

// Schedule::arena_bytes alone, in a fraction of the time.
std::size_t plan_arena_bytes(const Program& program, const std::vector<OpMemory>& memory);

// Each collective waits for the one before it, whatever their communicators.
void chain_all_collectives(const Program& program, TaskGraph& graph);

}  // namespace fleetrun::runtime
