// Which stream each op of a program works on, and who waits for whom across streams: decided once, then only read.
#pragma once
#include <vector>

#include "runtime/exec/task_graph.h"
#include "runtime/graph/program.h"

namespace fleetrun::runtime {

struct StreamPlan {
  std::vector<int> stream;               // by OpId
  std::vector<std::vector<OpId>> waits;  // by OpId: ops of other streams that it starts after
  std::vector<bool> marked;              // by OpId: some other stream waits for it
  std::vector<OpId> first;  // ops of other streams than compute that wait for no op: they start after
                            // what the compute stream was given before this run
  std::vector<OpId> last;   // ops of other streams that nobody waits for: what the compute stream is
                            // given after this run starts after them
};

// Collectives work on their communicator's stream, everything else on the compute stream. `graph` says what has to
// end before what (values and reused memory alike); inside a stream its order is enough, because ops are given to
// it in an order of the graph. Edges go from lower to higher ids.
StreamPlan plan_streams(const Program& program, const TaskGraph& graph);

}  // namespace fleetrun::runtime
