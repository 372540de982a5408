#pragma once
#include "runtime/passes/pass_context.h"

namespace fleetrun::runtime {

// Deals the all-reduces of gradients out to nccl_comm_num communicators, in turn in the order of the program.
//
//   all_reduce x=c@GRAD {op="sum"}        all_reduce x=c@GRAD {op="sum"}
//   all_reduce x=b@GRAD {op="sum"}   =>   all_reduce x=b@GRAD {communicator=1; op="sum"}
//   all_reduce x=a@GRAD {op="sum"}        all_reduce x=a@GRAD {op="sum"}
void assign_communicators(Program& program, const PassContext& context);

}  // namespace fleetrun::runtime
