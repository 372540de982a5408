#include "runtime/graph/backward.h"

#include <doctest/doctest.h>

#include "base/error/error.h"
#include "runtime/graph/program_text.h"
#include "runtime/graph/verify.h"
#include "support/toy_ops.h"

namespace fleetrun::runtime::backward_test {
namespace {

// The ops that append_backward added to a program.
std::string backward_of(const char* text) {
  Program program = parse_program(text, toy_ops());
  Builder builder(program, toy_ops());
  append_backward(builder, program.find("loss"));
  verify(program, toy_ops());
  const std::string printed = print_program(program, toy_ops());
  return printed.substr(printed.find("fill"));
}

TEST_CASE("a chain is walked backwards, and feeds get no gradient") {
  CHECK(backward_of("feed image f32[1]\n"
                    "parameter a f32[1] constant 0.0\n"
                    "parameter b f32[1] constant 0.0\n"
                    "activation h f32[1]\nactivation loss f32[1]\n"
                    "times x=image w=a -> y=h {} forward\n"
                    "times x=h w=b -> y=loss {} forward\n") ==
        "fill -> y=loss@GRAD {shape=[1]; value=1.0} backward\n"
        "times_grad_x x=loss@GRAD w=b -> y=h@GRAD {} backward\n"
        "times_grad_w x=h dy=loss@GRAD -> y=b@GRAD {} backward\n"
        "times_grad_w x=image dy=h@GRAD -> y=a@GRAD {} backward\n");
}

TEST_CASE("where two ops read a value, their gradients are added before they flow on") {
  const std::string text = backward_of(
      "feed image f32[1]\nparameter a f32[1] constant 0.0\n"
      "activation h f32[1]\nactivation left f32[1]\nactivation loss f32[1]\n"
      "times x=image w=a -> y=h {} forward\n"
      "square x=h -> y=left {} forward\n"
      "times x=left w=h -> y=loss {} forward\n");
  CHECK(text.find("elementwise_add x=loss@times_grad_w y=left@times -> out=h@GRAD {} backward\n"
                  "times_grad_w x=image dy=h@GRAD -> y=a@GRAD {} backward\n") != std::string::npos);
}

TEST_CASE("a parameter that is used twice gets one gradient") {
  Program program = parse_program(
      "feed image f32[1]\nparameter a f32[1] constant 0.0\n"
      "activation h f32[1]\nactivation loss f32[1]\n"
      "times x=image w=a -> y=h {} forward\n"
      "times x=h w=a -> y=loss {} forward\n",
      toy_ops());
  Builder builder(program, toy_ops());
  append_backward(builder, program.find("loss"));
  REQUIRE(program.of_kind(ValueKind::gradient).size() == 1);
  CHECK(program.gradient_of(program.find("a")) == program.find("a@GRAD"));
  CHECK(program.ops.back().type == "elementwise_add");
}

TEST_CASE("an op without a gradient rule stops the flow") {
  const std::string text = backward_of(
      "feed image f32[1]\nparameter a f32[1] constant 0.0\n"
      "activation h f32[1]\nactivation n f32[1]\nactivation loss f32[1]\n"
      "times x=image w=a -> y=h {} forward\n"
      "count x=h -> y=n {} forward\n"
      "square x=h -> y=loss {} forward\n");
  CHECK(text.find("n@GRAD") == std::string::npos);
}

TEST_CASE("a parameter that no gradient reaches is named") {
  Program program = parse_program(
      "feed image f32[1]\nparameter a f32[1] constant 0.0\nparameter b f32[1] constant 0.0\n"
      "activation h f32[1]\nactivation loss f32[1]\n"
      "times x=image w=a -> y=h {} forward\n"
      "square x=h -> y=loss {} forward\n",
      toy_ops());
  Builder builder(program, toy_ops());
  CHECK_THROWS_WITH_AS(append_backward(builder, program.find("loss")), "no gradient reaches parameter b",
                       Error);
}

}  // namespace
}  // namespace fleetrun::runtime::backward_test
