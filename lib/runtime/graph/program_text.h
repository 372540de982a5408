// Programs as text: one line per value, one per op. Written for people and tests, read back without loss.
//
//   parameter f1.weight f32[512,784] uniform 0.0357
//   state f1.weight.velocity f32[512,784] constant 0.0 of f1.weight
//   activation f1 f32[64,512]
//   fetch loss
//   contiguous a@GRAD,b@GRAD
//   fc x=image w=f1.weight b=f1.bias -> y=f1 {} forward
//   all_reduce x=a@GRAD,b@GRAD -> x=a@GRAD,b@GRAD {op="sum"} communication after y
//
// Layouts are printed after the shape (f32[64,32,28,28]@nChw16c) but belong to a device: a text that has
// them cannot be read back.
#pragma once
#include <string>
#include <string_view>

#include "runtime/graph/op_def.h"
#include "runtime/graph/program.h"

namespace fleetrun::runtime {

std::string print_program(const Program& program, const OpTable& ops);

// Throws Error(internal): "line 7: ...".
Program parse_program(std::string_view text, const OpTable& ops);

}  // namespace fleetrun::runtime
