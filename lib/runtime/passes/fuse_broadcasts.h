#pragma once
#include "runtime/passes/pass_context.h"

namespace fleetrun::runtime {

// All broadcasts of updated parameters become one op, which waits for all updates. The parameters of one owner lie one
// after the other, and travel as one message.
//
//   broadcast x=a -> x=a {roots=[1]}
//   broadcast x=b -> x=b {roots=[0]}      =>      contiguous b
//   broadcast x=c -> x=c {roots=[1]}              contiguous a,c
//                                                 broadcast x=b,a,c -> x=b,a,c {roots=[0,1,1]}
void fuse_broadcasts(Program& program, const PassContext& context);

}  // namespace fleetrun::runtime
