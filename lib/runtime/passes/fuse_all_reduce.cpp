// Gradients that are next to each other in memory travel as one message, once the last of them is made.
//
//   contiguous b@GRAD,a@GRAD                     contiguous b@GRAD,a@GRAD
//   fc_grad ... -> b@GRAD                        fc_grad ... -> b@GRAD
//   all_reduce x=b@GRAD -> x=b@GRAD         =>   fc_grad ... -> a@GRAD
//   fc_grad ... -> a@GRAD                        all_reduce x=b@GRAD,a@GRAD -> x=b@GRAD,a@GRAD
//   all_reduce x=a@GRAD -> x=a@GRAD
//
// Tells how many there were and are, in the words that PaddlePaddle logs
// (ir/multi_devices_graph_pass/fuse_all_reduce_op_pass.cc).
#include <map>

#include <fmt/format.h>

#include "base/error/error.h"
#include "runtime/passes/passes.h"

namespace fleetrun::runtime {
namespace {

bool sums_gradients(const Program& program, const Op& op) {
  return op.type == "all_reduce" && program.value(op.inputs.front()).kind == ValueKind::gradient;
}

// The contiguous list that each gradient is in.
std::map<ValueId, std::size_t> groups_of_gradients(const Program& program) {
  std::map<ValueId, std::size_t> group;
  for (std::size_t i = 0; i < program.contiguous.size(); ++i)
    for (const ValueId id : program.contiguous[i]) group[id] = i;
  return group;
}

}  // namespace

void fuse_all_reduce(Program& program, const PassContext& context) {
  const std::map<ValueId, std::size_t> group = groups_of_gradients(program);
  std::vector<std::size_t> missing;  // by group: gradients whose all-reduce has not come yet
  for (const auto& ids : program.contiguous) missing.push_back(ids.size());
  std::size_t before = 0, after = 0;
  std::vector<Op> ops;
  for (Op& op : program.ops) {
    const bool sums = sums_gradients(program, op);
    const auto found = sums ? group.find(op.inputs.front()) : group.end();
    before += sums ? 1 : 0;
    if (found == group.end() || --missing[found->second] == 0) {
      after += sums ? 1 : 0;
      if (found != group.end()) op.inputs = op.outputs = program.contiguous[found->second];
      ops.push_back(std::move(op));
    }
  }
  for (std::size_t i = 0; i < missing.size(); ++i)
    if (missing[i] != 0)
      throw Error(ErrorKind::internal,
                  fmt::format("{} of the gradients that travel with {} are not summed", missing[i],
                              program.value(program.contiguous[i].front()).name));
  program.ops = std::move(ops);
  context.tell(fmt::format(
      "Find all_reduce operators: {}. To make the speed faster, some all_reduce ops are fused during "
      "training, after fusion, the number of all_reduce ops is {}.",
      before, after));
}

}  // namespace fleetrun::runtime
