// Updates begin when the whole backward pass is done, and follow each other in the order of their gradients. Without
// this pass an update runs as soon as its gradient is summed, beside the rest of the backward pass.
//
//   sgd param=a grad=a@GRAD ...         sgd param=a grad=a@GRAD ... after b@GRAD
//   sgd param=b grad=b@GRAD ...    =>   sgd param=b grad=b@GRAD ... after a
//
// The first update waits for the backward ops whose results no backward op reads. Updates of different owners (reduce_strategy
// Reduce) run on different ranks, so each owner has its own chain.
#include <algorithm>
#include <map>
#include <set>

#include "runtime/graph/owner_of.h"
#include "runtime/passes/passes.h"

namespace fleetrun::runtime {
namespace {

// What the last ops of the backward pass make, one value of each.
std::vector<ValueId> ends_of_backward(const Program& program) {
  std::set<ValueId> read;
  for (const Op& op : program.ops)
    for (const ValueId id : op.inputs) {
      const bool in_place = std::find(op.outputs.begin(), op.outputs.end(), id) != op.outputs.end();
      if (op.role == Role::backward && !in_place) read.insert(id);
    }
  std::vector<ValueId> ends;
  for (const Op& op : program.ops) {
    if (op.role != Role::backward) continue;
    ValueId made = kNone;
    bool is_end = true;
    for (const ValueId id : op.outputs) {
      if (id == kNone) continue;
      made = id;
      is_end = is_end && read.count(id) == 0;
    }
    if (is_end && made != kNone) ends.push_back(made);
  }
  return ends;
}

}  // namespace

void backward_optimizer_deps(Program& program, const PassContext&) {
  const std::vector<ValueId> ends = ends_of_backward(program);
  std::map<int, ValueId> previous;  // by owner: what its update before this one writes
  for (Op& op : program.ops) {
    if (op.role != Role::optimize) continue;
    const auto [before, is_first] = previous.try_emplace(owner_of(op), op.outputs.front());
    if (is_first)
      op.after.insert(op.after.end(), ends.begin(), ends.end());
    else
      op.after.push_back(before->second);
    before->second = op.outputs.front();
  }
}

}  // namespace fleetrun::runtime
