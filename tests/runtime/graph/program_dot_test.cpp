#include "runtime/graph/program_dot.h"

#include <doctest/doctest.h>

#include "runtime/graph/program_text.h"
#include "support/toy_ops.h"

namespace fleetrun::runtime {
namespace {

TEST_CASE("ops are boxes by role, values edges from their last writer, what no op writes is an ellipse") {
  Program program = parse_program(
      "feed image f32[2,3]\n"
      "parameter a f32[2,3] uniform 0.125\n"
      "gradient a@GRAD f32[2,3] of a\n"
      "activation h f32[2,3]\n"
      "fetch h\n"
      "times x=image w=a -> y=h {} forward\n"
      "times_grad_w x=image dy=h -> y=a@GRAD {} backward\n"
      "all_reduce x=a@GRAD -> x=a@GRAD {} communication\n"
      "update param=a grad=a@GRAD -> param=a {} optimize\n",
      toy_ops());
  program.value(program.find("h")).layout = {.name = "nChw16c", .bytes = 64};
  CHECK(program_dot(program) ==
        R"(digraph program {
  node [shape=box, style=filled, fillcolor=white];
  op0 [label="times\nh", fillcolor="#cfe2f3"];
  value0 [label="feed\nimage", shape=ellipse];
  value0 -> op0 [label="image\nf32[2,3]"];
  value1 [label="parameter\na", shape=ellipse];
  value1 -> op0 [label="a\nf32[2,3]"];
  op1 [label="times_grad_w\na@GRAD", fillcolor="#f9d5c5"];
  value0 -> op1 [label="image\nf32[2,3]"];
  op0 -> op1 [label="h\nf32[2,3]@nChw16c"];
  op2 [label="all_reduce\na@GRAD", fillcolor="#fff2b3"];
  op1 -> op2 [label="a@GRAD\nf32[2,3]"];
  op3 [label="update\na", fillcolor="#d5e8d4"];
  value1 -> op3 [label="a\nf32[2,3]"];
  op2 -> op3 [label="a@GRAD\nf32[2,3]"];
  fetch3 [label="fetch\nh", shape=ellipse];
  op0 -> fetch3 [label="h\nf32[2,3]@nChw16c"];
}
)");
}

TEST_CASE("names cannot break out of the quotes") {
  Program program;
  const ValueId x = program.add_value({.name = R"(x"]; \)", .shape = {}, .kind = ValueKind::feed});
  program.fetches.push_back(x);
  CHECK(program_dot(program).find(R"(label="feed\nx\"]; \\")") != std::string::npos);
}

}  // namespace
}  // namespace fleetrun::runtime
