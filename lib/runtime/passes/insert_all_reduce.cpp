// Sums every parameter gradient over the ranks, right after the op that makes it.
//
//   fc_grad ... -> w@GRAD                  =>    fc_grad ... -> w@GRAD
//   sgd param=w grad=w@GRAD                      all_reduce x=w@GRAD -> x=w@GRAD {op="sum"}
//                                                sgd param=w grad=w@GRAD
#include "runtime/passes/passes.h"

namespace fleetrun::runtime {
namespace {

Op all_reduce(ValueId gradient) {
  return {.type = "all_reduce",
          .inputs = {gradient},
          .outputs = {gradient},
          .attributes = {{"op", std::string("sum")}},
          .role = Role::communication};
}

}  // namespace

void insert_all_reduce(Program& program, const PassContext&) {
  std::vector<Op> ops;
  for (Op& op : program.ops) {
    const bool writes = op.role == Role::backward;
    const std::vector<ValueId> outputs = op.outputs;
    ops.push_back(std::move(op));
    for (const ValueId id : outputs)
      if (writes && id != kNone && program.value(id).kind == ValueKind::gradient)
        ops.push_back(all_reduce(id));
  }
  program.ops = std::move(ops);
}

}  // namespace fleetrun::runtime
