#include "runtime/graph/program_text.h"

#include <doctest/doctest.h>

#include "base/error/error.h"
#include "support/toy_ops.h"

namespace fleetrun::runtime::program_text_test {
namespace {

TEST_CASE("a program reads back from its text without loss") {
  const std::string text =
      "feed image f32[2,3]\n"
      "feed label i32[2]\n"
      "parameter a f32[2,3] uniform 0.125\n"
      "state a.velocity f32[2,3] constant 0.0 of a\n"
      "gradient a@GRAD f32[2,3] of a\n"
      "activation h f32[2,3]\n"
      "activation seed f32[]\n"
      "fetch h\n"
      "fill -> y=seed {shape=[]; value=1.0} backward\n"
      "times x=image w=a -> y=h {deep=true; mode=\"a b; c\"; n=3} forward\n"
      "all_reduce x=a@GRAD -> x=a@GRAD {op=\"sum\"} communication\n"
      "update param=a grad=a@GRAD -> param=a {} optimize\n";
  CHECK(print_program(parse_program(text, toy_ops()), toy_ops()) == text);
}

TEST_CASE("a layout is printed after the shape and is not read back") {
  Program program;
  program.add_value(
      {.name = "x", .shape = {2}, .kind = ValueKind::feed, .layout = {.name = "nChw16c", .bytes = 64}});
  const std::string text = print_program(program, toy_ops());
  CHECK(text == "feed x f32[2]@nChw16c\n");
  CHECK_THROWS_WITH_AS(parse_program(text, toy_ops()),
                       "line 1: layouts are chosen by a device and cannot be read back", Error);
}

TEST_CASE("what cannot be read is named with its line") {
  const auto error_of = [](const char* text) {
    try {
      parse_program(text, toy_ops());
    } catch (const Error& error) {
      return error.message();
    }
    return std::string("no error");
  };
  CHECK(error_of("feed x f32[1]\nblur x=x -> y=x {} forward\n") == "line 2: there is no op blur");
  CHECK(error_of("feed x f33[1]\n") == "line 1: f33[1] is not a type; wanted one like f32[2,3]");
  CHECK(error_of("square x=nowhere -> y=nowhere {} forward\n") == "line 1: there is no value nowhere");
  CHECK(error_of("feed x f32[1]\nsquare z=x -> y=x {} forward\n") == "line 2: op square has no input z");
  CHECK(error_of("feed x f32[1]\nsquare x=x -> y=x {} sideways\n") == "line 2: \"sideways\" is not a role");
  CHECK(error_of("feed x f32[1]\nfeed x f32[1]\n") == "two values of the program are named x");
}

}  // namespace
}  // namespace fleetrun::runtime::program_text_test
