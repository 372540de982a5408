// Brings the sums of gradients into the same order on every rank: by the level of the op that makes the gradient, and within a
// level by the name of the first gradient, in descending order. The level of an op is one more than the highest level of the ops
// whose values it reads (paddle/fluid/framework/ir/multi_devices_graph_pass/all_reduce_deps_pass.cc). Each sum comes right
// after its gradients and the sums before it.
//
//   fc_grad ... -> a@GRAD (level 3)      fc_grad ... -> a@GRAD
//   all_reduce x=a@GRAD                  fc_grad ... -> b@GRAD
//   fc_grad ... -> b@GRAD (level 2) =>   all_reduce x=b@GRAD
//   all_reduce x=b@GRAD                  all_reduce x=a@GRAD
#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "base/error/error.h"
#include "runtime/passes/passes.h"

namespace fleetrun::runtime {
namespace {

bool is_moved(const Program& program, const Op& op) {
  return op.role == Role::communication && program.value(op.inputs.front()).kind == ValueKind::gradient;
}

struct Sum {
  Op op;
  int level = 0;
  std::string name;
};

// In the order in which they are to be; `rest` gets all other ops.
std::vector<Sum> take_sums(Program& program, std::vector<Op>& rest) {
  std::vector<int> level(program.values.size(), 0);
  std::vector<Sum> sums;
  for (Op& op : program.ops) {
    int own = 0;
    for (const ValueId id : op.inputs)
      if (id != kNone) own = std::max(own, level[static_cast<std::size_t>(id)] + 1);
    if (is_moved(program, op)) {
      const std::string name = program.value(op.inputs.front()).name;
      sums.push_back({std::move(op), own, name});
      continue;
    }
    for (const ValueId id : op.outputs)
      if (id != kNone) level[static_cast<std::size_t>(id)] = own;
    rest.push_back(std::move(op));
  }
  std::stable_sort(sums.begin(), sums.end(), [](const Sum& a, const Sum& b) {
    return a.level != b.level ? a.level < b.level : a.name > b.name;
  });
  return sums;
}

}  // namespace

void order_all_reduces(Program& program, const PassContext&) {
  std::vector<Op> rest, ops;
  const std::vector<Sum> sums = take_sums(program, rest);
  std::set<ValueId> unmade;  // gradients that are summed and not made yet
  for (const Sum& sum : sums) unmade.insert(sum.op.inputs.begin(), sum.op.inputs.end());
  auto next = sums.begin();
  const auto ready = [&](const Sum& sum) {
    return std::none_of(sum.op.inputs.begin(), sum.op.inputs.end(),
                        [&](ValueId id) { return unmade.count(id) > 0; });
  };
  for (Op& op : rest) {
    const std::vector<ValueId> made = op.outputs;
    ops.push_back(std::move(op));
    for (const ValueId id : made) unmade.erase(id);
    while (next != sums.end() && ready(*next)) ops.push_back((next++)->op);
  }
  if (next != sums.end())
    throw Error(ErrorKind::internal, fmt::format("{} is summed and never made", next->name));
  program.ops = std::move(ops);
}

}  // namespace fleetrun::runtime
