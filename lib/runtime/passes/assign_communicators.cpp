// Distributes the all-reduces of gradients over nccl_comm_num communicators, in turn, in the order of the program. With several groups of
// ranks (sharding_groups.h) there are as many for each group.
//
//   all_reduce x=c@GRAD {op="sum"}        all_reduce x=c@GRAD {op="sum"}
//   all_reduce x=b@GRAD {op="sum"}   =>   all_reduce x=b@GRAD {communicator=1; op="sum"}
//   all_reduce x=a@GRAD {op="sum"}        all_reduce x=a@GRAD {op="sum"}
#include <map>

#include "runtime/graph/communicator_of.h"
#include "runtime/passes/passes.h"

namespace fleetrun::runtime {

void assign_communicators(Program& program, const PassContext& context) {
  const auto dealt_out = [&](const Op& op) {  // not the sums within the forward and the backward part
    return op.role == Role::communication && program.value(op.inputs.front()).kind != ValueKind::activation;
  };
  std::map<int, int> number;  // by the first of the communicators of the same ranks
  for (Op& op : program.ops) {
    const int first = communicator_of(op);
    if (dealt_out(op)) set_communicator(op, first + number[first]++ % context.strategy.nccl_comm_num);
  }
}

}  // namespace fleetrun::runtime
