// Checks that a program can run: after building it and after every pass.
#pragma once
#include "runtime/graph/op_def.h"
#include "runtime/graph/program.h"

namespace fleetrun::runtime {

// Every op is known and has the arguments of its definition; every value is written before it is read, and
// by one op unless in place; shapes are what the ops infer; gradients have their parameter's shape.
// Throws Error(internal) that names op and value.
void verify(const Program& program, const OpTable& ops);

}  // namespace fleetrun::runtime
