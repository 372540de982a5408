// strategy.sharding: each rank averages the weights that it owns, so it keeps only these averages.
//
//   sgd param=a ... -> param=a {owner=0}
//   sgd param=b ... -> param=b {owner=1}
//   average_weights param=a,b average=a.ema,b.ema decay_pow=p -> average=a.ema,b.ema decay_pow=p
//     =>
//   average_weights param=a average=a.ema decay_pow=p -> average=a.ema decay_pow=p {owner=0}
//   average_weights param=b average=b.ema decay_pow=p -> average=b.ema decay_pow=p {owner=1}
//
// Each rank runs one of them, which also updates its decay_pow.
#include <map>

#include "runtime/graph/owner_of.h"
#include "runtime/passes/gather_parameters.h"
#include "runtime/passes/passes.h"

namespace fleetrun::runtime {
namespace {

std::vector<Op> by_owner(const Op& averages, const std::map<ValueId, int>& owners) {
  struct Part {
    std::vector<ValueId> parameters, averages;
  };
  const std::size_t count = averages.outputs.size() - 1;
  const ValueId decay_pow = averages.outputs.back();
  std::map<int, Part> parts;
  for (std::size_t i = 0; i < count; ++i) {
    Part& part = parts[owners.at(averages.inputs[i])];
    part.parameters.push_back(averages.inputs[i]);
    part.averages.push_back(averages.outputs[i]);
  }
  std::vector<Op> ops;
  for (const auto& [owner, part] : parts) {
    Op op = averages;
    op.inputs = part.parameters;
    op.inputs.insert(op.inputs.end(), part.averages.begin(), part.averages.end());
    op.inputs.push_back(decay_pow);
    op.outputs = part.averages;
    op.outputs.push_back(decay_pow);
    set_owner(op, owner);
    ops.push_back(std::move(op));
  }
  return ops;
}

}  // namespace

void divide_averages(Program& program, const PassContext&) {
  const std::map<ValueId, int> owners = owners_of_parameters(program);
  std::vector<Op> ops;
  for (Op& op : program.ops) {
    if (op.type != "average_weights") {
      ops.push_back(std::move(op));
      continue;
    }
    for (Op& part : by_owner(op, owners)) ops.push_back(std::move(part));
  }
  program.ops = std::move(ops);
}

}  // namespace fleetrun::runtime
