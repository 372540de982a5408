#include "runtime/passes/assign_communicators.h"

#include "runtime/graph/communicator_of.h"

namespace fleetrun::runtime {

void assign_communicators(Program& program, const PassContext& context) {
  const auto dealt_out = [&](const Op& op) {  // not the sums within the forward and the backward part
    return op.role == Role::communication && program.value(op.inputs.front()).kind != ValueKind::activation;
  };
  int number = 0;
  for (Op& op : program.ops)
    if (dealt_out(op)) set_communicator(op, number++ % context.strategy.nccl_comm_num);
}

}  // namespace fleetrun::runtime
