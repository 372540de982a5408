#include "runtime/passes/join_small_ops.h"

#include <doctest/doctest.h>

#include "support/pass_text.h"

namespace fleetrun::runtime::join_small_ops_test {
namespace {

std::string joined(const std::string& program) {
  const auto pass = [](Program& made, const PassContext& context) { join_small_ops(made, context.ops); };
  return test::run_pass(pass, program).text;
}

std::string cast(const std::string& x, const std::string& y, const std::string& dtype,
                 const std::string& role) {
  return "cast x=" + x + " -> y=" + y + " {dtype=\"" + dtype + "\"} " + role + "\n";
}

const std::string kModel =
    "feed x f32[1,2]\n"
    "parameter a f32[2,2] constant 0.0\n"
    "parameter b f32[2,2] constant 0.0\n"
    "activation x.f16 f16[1,2]\n"
    "activation a.f16 f16[2,2]\n"
    "activation one f16[1,2]\n"
    "activation b.f16 f16[2,2]\n"
    "activation two f16[1,2]\n";

TEST_CASE("the casts of all parameters become one, in front of the first reader, and other casts stay") {
  const std::string image = cast("x", "x.f16", "f16", "forward");
  const std::string first = "fc x=x.f16 w=a.f16 -> y=one {} forward\n",
                    second = "fc x=one w=b.f16 -> y=two {} forward\n";
  CHECK(joined(kModel + image + cast("a", "a.f16", "f16", "forward") + first +
               cast("b", "b.f16", "f16", "forward") + second) ==
        kModel + image + cast("a,b", "a.f16,b.f16", "f16", "forward") + first + second);
}

TEST_CASE("what is cast again for recomputing is not kept from the start of the step on") {
  const std::string program =
      kModel + cast("a", "a.f16", "f16", "forward") + cast("b", "b.f16", "f16", "backward");
  CHECK(joined(program) == program);
}

const std::string kGradients =
    "parameter a f32[2] constant 0.0\n"
    "gradient a@GRAD f16[2] of a\n"
    "parameter b f32[3] constant 0.0\n"
    "gradient b@GRAD f16[3] of b\n"
    "parameter c f32[4] constant 0.0\n"
    "gradient c@GRAD f16[4] of c\n"
    "activation a.wide f32[2]\n"
    "activation b.wide f32[3]\n"
    "activation c.wide f32[4]\n"
    "activation scale f32[1]\n"
    "activation found f32[1]\n"
    "fill -> y=scale {shape=[1]; value=8.0} forward\n"
    "fill -> y=found {shape=[1]; value=0.0} optimize\n";

std::string made(const std::string& name, int size) {
  return "fill -> y=" + name + ".wide {shape=[" + std::to_string(size) + "]; value=1.0} backward\n" +
         cast(name + ".wide", name + "@GRAD", "f16", "backward");
}

std::string all_reduce(const std::string& names) {
  return "all_reduce x=" + names + " -> x=" + names + " {op=\"sum\"} communication\n";
}

std::string check(const std::string& x, const std::string& out, const std::string& after = "") {
  return "check_finite_and_unscale x=" + x + " scale=scale found=found -> out=" + out +
         " found=found {} optimize" + (after.empty() ? "" : " after " + after) + "\n";
}

// The same program with other values for what is checked.
std::string with_outputs(std::string program) {
  const std::string place = "activation scale";
  return program.insert(program.find(place),
                        "activation a.out f32[2]\nactivation b.out f32[3]\nactivation c.out f32[4]\n");
}

TEST_CASE("gradients that one collective sums are checked by one op, and wait for no other collective") {
  const std::string start = with_outputs(kGradients) + made("a", 2) + made("b", 3) + made("c", 4) +
                            all_reduce("a@GRAD,b@GRAD") + all_reduce("c@GRAD");
  CHECK(joined(start + check("a@GRAD", "a.out") + check("c@GRAD", "c.out") + check("b@GRAD", "b.out")) ==
        start + check("a@GRAD,b@GRAD", "a.out,b.out") + check("c@GRAD", "c.out"));
}

TEST_CASE(
    "gradients that one collective sums in a narrow type are cast by one op, when the last of them is there") {
  const auto wide = [](const std::string& name, int size) {
    return "fill -> y=" + name + ".wide {shape=[" + std::to_string(size) + "]; value=1.0} backward\n";
  };
  const auto narrow = [](const std::string& grads, const std::string& params, const std::string& out) {
    return "cast_gradient grad=" + grads + " param=" + params + " -> out=" + out +
           " {dtype=\"f16\"} backward\n";
  };
  const std::string end = all_reduce("a@GRAD,b@GRAD") + all_reduce("c@GRAD");
  CHECK(joined(kGradients + wide("a", 2) + narrow("a.wide", "a", "a@GRAD") + wide("c", 4) +
               narrow("c.wide", "c", "c@GRAD") + wide("b", 3) + narrow("b.wide", "b", "b@GRAD") + end) ==
        kGradients + wide("a", 2) + wide("c", 4) + narrow("c.wide", "c", "c@GRAD") + wide("b", 3) +
            narrow("a.wide,b.wide", "a,b", "a@GRAD,b@GRAD") + end);

  // In a strict order, the second gradient is made after the first one has been cast.
  const auto after = [](std::string op, const std::string& value) {
    return op.insert(op.size() - 1, " after " + value);
  };
  const std::string ordered = kGradients + wide("a", 2) + narrow("a.wide", "a", "a@GRAD") +
                              after(wide("b", 3), "a@GRAD") +
                              after(narrow("b.wide", "b", "b@GRAD"), "b.wide") + all_reduce("a@GRAD,b@GRAD");
  CHECK(joined(ordered) == ordered);
}

TEST_CASE("ops that wait for each other become one, which waits for all others that they wait for") {
  const std::string start = with_outputs(kGradients) + made("a", 2) + made("b", 3) + made("c", 4);
  CHECK(joined(start + check("a@GRAD", "a.out", "a.wide") + check("b@GRAD", "b.out", "a.out") +
               check("c@GRAD", "c.out", "b.out")) ==
        start + check("a@GRAD,b@GRAD,c@GRAD", "a.out,b.out,c.out", "a.wide"));
}

TEST_CASE("an op does not move in front of what makes its input") {
  const std::string program = with_outputs(kGradients) + made("a", 2) + check("a@GRAD", "a.out") +
                              made("b", 3) + check("b@GRAD", "b.out");
  CHECK(joined(program) == program);
}

TEST_CASE("gradients are cast by one op for each type that they have") {
  std::string values = with_outputs(kGradients);
  const std::string narrow = "gradient c@GRAD f16[4]";
  values.replace(values.find(narrow), narrow.size(), "gradient c@GRAD bf16[4]");
  const std::string start = values + made("a", 2) + made("b", 3) +
                            "fill -> y=c.wide {shape=[4]; value=1.0} backward\n" +
                            cast("c.wide", "c@GRAD", "bf16", "backward");
  CHECK(joined(start + cast("a@GRAD", "a.out", "f32", "optimize") +
               cast("b@GRAD", "b.out", "f32", "optimize") + cast("c@GRAD", "c.out", "f32", "optimize")) ==
        start + cast("a@GRAD,b@GRAD", "a.out,b.out", "f32", "optimize") +
            cast("c@GRAD", "c.out", "f32", "optimize"));
}

}  // namespace
}  // namespace fleetrun::runtime::join_small_ops_test
