#include "runtime/graph/program_dot.h"

#include <doctest/doctest.h>

#include "runtime/graph/program_text.h"
#include "support/toy_ops.h"

namespace fleetrun::runtime::program_dot_test {
namespace {

TEST_CASE(
    "ops are boxes by role with what they write, edges lead from the last writer, what no op writes is an ellipse") {
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
  splines=line;
  nslimit=0.1;
  node [shape=box, style=filled, fillcolor=white];
  op0 [label="times\nh f32[2,3]@nChw16c", fillcolor="#cfe2f3"];
  value0_op0 [label="feed\nimage f32[2,3]", shape=ellipse];
  value0_op0 -> op0;
  value1_op0 [label="parameter\na f32[2,3]", shape=ellipse];
  value1_op0 -> op0;
  op1 [label="times_grad_w\na@GRAD f32[2,3]", fillcolor="#f9d5c5"];
  value0_op1 [label="feed\nimage f32[2,3]", shape=ellipse];
  value0_op1 -> op1;
  op0 -> op1;
  op2 [label="all_reduce\na@GRAD f32[2,3]", fillcolor="#fff2b3"];
  op1 -> op2;
  op3 [label="update\na f32[2,3]", fillcolor="#d5e8d4"];
  value1_op3 [label="parameter\na f32[2,3]", shape=ellipse];
  value1_op3 -> op3;
  op2 -> op3;
  fetch3 [label="fetch\nh", shape=ellipse];
  op0 -> fetch3;
}
)");
}

TEST_CASE("names cannot break out of the quotes") {
  Program program;
  const ValueId x = program.add_value({.name = R"(x"]; \)", .shape = {}, .kind = ValueKind::feed});
  program.fetches.push_back(x);
  CHECK(program_dot(program).find(R"(label="feed\nx\"]; \\ f32[]")") != std::string::npos);
}

}  // namespace
}  // namespace fleetrun::runtime::program_dot_test
