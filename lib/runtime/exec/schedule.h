// When each op may run and where its values lie: made once from a program, then only read.
#pragma once
#include <cstddef>
#include <optional>
#include <vector>

#include "runtime/exec/task_graph.h"
#include "runtime/graph/program.h"

namespace fleetrun::runtime {

struct Schedule {
  TaskGraph graph;                                        // one task per op of the program
  std::vector<std::optional<std::size_t>> value_offsets;  // in the arena, by ValueId; none: lives elsewhere
  std::vector<std::size_t> scratch_offsets;               // in the arena, by OpId
  std::size_t arena_bytes = 0;
  std::size_t unshared_bytes = 0;  // what the arena would take without reuse
};

// An op waits for the writers of what it reads, for the readers of what it overwrites (values and reused
// memory alike), and a collective for the collective before it, so that every rank issues them in one order.
Schedule plan_schedule(const Program& program, const std::vector<std::size_t>& scratch_bytes);

}  // namespace fleetrun::runtime
