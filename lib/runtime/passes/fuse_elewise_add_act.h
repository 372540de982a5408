#pragma once
#include "runtime/passes/pass_context.h"

namespace fleetrun::runtime {

// An addition and the relu or scale of its sum become one op; the relu_grad behind becomes one that also takes over the
// addition in front of it, which puts together the gradients of two readers.
//
//   elementwise_add x y -> s                     elementwise_add_act x y -> out {act="relu"; of="sum"}
//   relu x=s -> out                        =>
//   elementwise_add a b -> out@GRAD              elementwise_add_act_grad y=out dy=a more=b -> s@GRAD
//   relu_grad y=out dy=out@GRAD -> s@GRAD
//
// So do an addition and the relu or scale of one side, when nobody else reads that.
//
//   relu x=y -> r                                elementwise_add_act x y -> out {act="relu"; of="y"}
//   elementwise_add x y=r -> out           =>
//   relu_grad y=r dy=out@GRAD -> y@GRAD          elementwise_add_act_grad y dy=out@GRAD -> y@GRAD
// Bits stay as they are.
void fuse_elewise_add_act(Program& program, const PassContext& context);

}  // namespace fleetrun::runtime
