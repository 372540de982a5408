#include <doctest/doctest.h>

#include "runtime/passes/passes.h"
#include "support/pass_text.h"

namespace fleetrun::runtime::fuse_all_reduce_test {
namespace {

const std::string kValues =
    "parameter a f32[2] constant 0.0\n"
    "gradient a@GRAD f32[2] of a\n"
    "parameter b f32[3] constant 0.0\n"
    "gradient b@GRAD f32[3] of b\n"
    "parameter c f32[4] constant 0.0\n"
    "gradient c@GRAD f32[4] of c\n";

std::string fill(const std::string& name, int size) {
  return "fill -> y=" + name + "@GRAD {shape=[" + std::to_string(size) + "]; value=1.0} backward\n";
}

std::string all_reduce(const std::string& names) {
  return "all_reduce x=" + names + " -> x=" + names + " {op=\"sum\"} communication\n";
}

TEST_CASE("gradients are laid in the order in which they are made") {
  const std::string ops = fill("c", 4) + fill("b", 3) + fill("a", 2);
  CHECK(test::run_pass(coalesce_gradients, kValues + ops).text ==
        kValues + "contiguous c@GRAD,b@GRAD,a@GRAD\n" + ops);
}

TEST_CASE("a group travels once its last gradient is made, and the published line tells the numbers") {
  const test::PassResult result =
      test::run_pass(fuse_all_reduce, kValues + "contiguous c@GRAD,b@GRAD\ncontiguous a@GRAD\n" +
                                          fill("c", 4) + all_reduce("c@GRAD") + fill("b", 3) +
                                          all_reduce("b@GRAD") + fill("a", 2) + all_reduce("a@GRAD"));
  CHECK(result.text == kValues + "contiguous c@GRAD,b@GRAD\ncontiguous a@GRAD\n" + fill("c", 4) +
                           fill("b", 3) + all_reduce("c@GRAD,b@GRAD") + fill("a", 2) + all_reduce("a@GRAD"));
  CHECK(
      result.messages ==
      std::vector<std::string>{
          "Find all_reduce operators: 3. To make the speed faster, some all_reduce ops are fused during training, "
          "after fusion, the number of all_reduce ops is 2."});
}

TEST_CASE("sums are ordered by the level of their gradients, those of one level by name, the last first") {
  const std::string values = kValues + "activation z f32[2]\n";
  const std::string made =
      "fill -> y=z {shape=[2]; value=1.0} backward\n" + std::string("relu x=z -> y=a@GRAD {} backward\n");
  CHECK(test::run_pass(order_all_reduces, values + made + all_reduce("a@GRAD") + fill("b", 3) +
                                              all_reduce("b@GRAD") + fill("c", 4) + all_reduce("c@GRAD"))
            .text == values + made + fill("b", 3) + fill("c", 4) + all_reduce("c@GRAD") +
                         all_reduce("b@GRAD") + all_reduce("a@GRAD"));
}

}  // namespace
}  // namespace fleetrun::runtime::fuse_all_reduce_test
