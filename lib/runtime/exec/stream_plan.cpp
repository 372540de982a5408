#include "runtime/exec/stream_plan.h"

#include <algorithm>
#include <cstdint>

#include "runtime/graph/communicator_of.h"
#include "runtime/kernels/streams.h"

namespace fleetrun::runtime {
namespace {

// Which ops have to end before each op, directly or by way of others.
class Ancestors {
 public:
  explicit Ancestors(const TaskGraph& graph)
      : before_(graph.size(), Bits((graph.size() + kBits - 1) / kBits)), direct_(graph.size()) {
    for (std::size_t op = 0; op < graph.size(); ++op) {
      for (const OpId successor : graph.successors[op]) {
        const auto after = static_cast<std::size_t>(successor);
        direct_[after].push_back(op);
        for (std::size_t i = 0; i <= op / kBits; ++i) before_[after][i] |= before_[op][i];
        before_[after][op / kBits] |= std::uint64_t{1} << op % kBits;
      }
    }
  }

  // Direct ones, without those that another one waits for anyway.
  std::vector<std::size_t> last_before(std::size_t op) const {
    std::vector<std::size_t> last;
    for (const std::size_t candidate : direct_[op])
      if (std::none_of(direct_[op].begin(), direct_[op].end(),
                       [&](std::size_t other) { return is_before(candidate, other); }))
        last.push_back(candidate);
    return last;
  }

 private:
  static constexpr std::size_t kBits = 64;
  using Bits = std::vector<std::uint64_t>;  // one bit for each op

  bool is_before(std::size_t op, std::size_t other) const {
    return (before_[other][op / kBits] >> op % kBits & 1) != 0;
  }

  std::vector<Bits> before_;                      // by op
  std::vector<std::vector<std::size_t>> direct_;  // by op
};

}  // namespace

StreamPlan plan_streams(const Program& program, const TaskGraph& graph) {
  const std::size_t ops = program.ops.size();
  StreamPlan plan = {
      std::vector<int>(ops), std::vector<std::vector<OpId>>(ops), std::vector<bool>(ops), {}, {}};
  for (std::size_t i = 0; i < ops; ++i)
    plan.stream[i] = program.ops[i].role == Role::communication
                         ? kFirstCommunicatorStream + communicator_of(program.ops[i])
                         : kComputeStream;
  const Ancestors ancestors(graph);
  for (std::size_t i = 0; i < ops; ++i) {
    for (const std::size_t other : ancestors.last_before(i)) {
      if (plan.stream[other] == plan.stream[i]) continue;
      plan.waits[i].push_back(static_cast<OpId>(other));
      plan.marked[other] = true;
    }
    if (plan.stream[i] == kComputeStream) continue;
    if (graph.dependencies[i] == 0) plan.first.push_back(static_cast<OpId>(i));
    if (!graph.successors[i].empty()) continue;
    plan.last.push_back(static_cast<OpId>(i));
    plan.marked[i] = true;
  }
  return plan;
}

}  // namespace fleetrun::runtime
