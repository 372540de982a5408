#include "runtime/passes/assign_communicators.h"

#include "runtime/graph/communicator_of.h"

namespace fleetrun::runtime {

void assign_communicators(Program& program, const PassContext& context) {
  int number = 0;
  for (Op& op : program.ops)
    if (op.role == Role::communication) set_communicator(op, number++ % context.strategy.nccl_comm_num);
}

}  // namespace fleetrun::runtime
