#include "runtime/graph/verify.h"

#include <doctest/doctest.h>

#include "base/error/error.h"
#include "runtime/graph/program_text.h"
#include "support/toy_ops.h"

namespace fleetrun::runtime::verify_test {
namespace {

std::string problem_of(const Program& program) {
  try {
    verify(program, toy_ops());
  } catch (const Error& error) {
    return error.message();
  }
  return "none";
}

std::string problem_of(const std::string& ops) {
  return problem_of(
      parse_program("feed image f32[2]\nparameter a f32[2] constant 0.0\ngradient a@GRAD f32[2] of a\n"
                    "activation h f32[2]\nactivation i f32[2]\nactivation wide f32[3]\n" +
                        ops,
                    toy_ops()));
}

TEST_CASE("a program in order has no problem") {
  CHECK(problem_of("times x=image w=a -> y=h {} forward\nsquare x=h -> y=i {} forward\n") == "none");
}

TEST_CASE("a value must be written before it is read") {
  CHECK(problem_of("square x=h -> y=i {} forward\n") == "op 0 (square): reads h before it is written");
}

TEST_CASE("a value has one writer, unless it is updated in place") {
  CHECK(problem_of("square x=image -> y=h {} forward\nsquare x=image -> y=h {} forward\n") ==
        "op 1 (square): writes h a second time");
  CHECK(problem_of(
            "square x=image -> y=a@GRAD {} backward\nupdate param=a grad=a@GRAD -> param=a {} optimize\n") ==
        "none");
}

TEST_CASE("an update in place returns what it was given") {
  CHECK(problem_of(
            "square x=image -> y=a@GRAD {} backward\nupdate param=a grad=a@GRAD -> param=h {} optimize\n") ==
        "op 1 (update): updates h in place, but reads another value there");
}

TEST_CASE("a shape that the op does not make is reported") {
  CHECK(problem_of("square x=image -> y=wide {} forward\n") ==
        "op 0 (square): wide is f32[3], but its inputs make f32[2]");
}

TEST_CASE("a missing argument is reported") {
  Program program =
      parse_program("feed image f32[2]\nactivation h f32[2]\nsquare x=image -> y=h {} forward\n", toy_ops());
  program.ops.front().inputs.front() = kNone;
  CHECK(problem_of(program) == "op 0 (square): lacks its input x");
}

TEST_CASE("a fetch must be written") { CHECK(problem_of("fetch h\n") == "fetch h is never written"); }

}  // namespace
}  // namespace fleetrun::runtime::verify_test
