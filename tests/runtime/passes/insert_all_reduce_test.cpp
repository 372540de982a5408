#include <doctest/doctest.h>

#include "runtime/passes/passes.h"
#include "support/pass_text.h"
#include "support/toy_ops.h"

namespace fleetrun::runtime::insert_all_reduce_test {
namespace {

const std::string kValues =
    "feed image f32[1]\n"
    "parameter a f32[1] constant 0.0\n"
    "activation loss f32[1]\n"
    "activation loss@GRAD f32[1]\n"
    "gradient a@GRAD f32[1] of a\n";
const std::string kProgram = kValues +
                             "times x=image w=a -> y=loss {} forward\n"
                             "fill -> y=loss@GRAD {shape=[1]; value=1.0} backward\n"
                             "times_grad_w x=image dy=loss@GRAD -> y=a@GRAD {} backward\n"
                             "update param=a grad=a@GRAD -> param=a {} optimize\n";

TEST_CASE("every gradient is summed right after it is made") {
  CHECK(test::run_pass(insert_all_reduce, kProgram, {}, toy_ops()).text ==
        kValues +
            "times x=image w=a -> y=loss {} forward\n"
            "fill -> y=loss@GRAD {shape=[1]; value=1.0} backward\n"
            "times_grad_w x=image dy=loss@GRAD -> y=a@GRAD {} backward\n"
            "all_reduce x=a@GRAD -> x=a@GRAD {op=\"sum\"} communication\n"
            "update param=a grad=a@GRAD -> param=a {} optimize\n");
}

TEST_CASE("the gradient of the loss carries the mean over the ranks") {
  CHECK(test::run_pass(scale_loss_gradient, kProgram, {}, toy_ops(), 4).text ==
        kValues +
            "times x=image w=a -> y=loss {} forward\n"
            "fill -> y=loss@GRAD {shape=[1]; value=0.25} backward\n"
            "times_grad_w x=image dy=loss@GRAD -> y=a@GRAD {} backward\n"
            "update param=a grad=a@GRAD -> param=a {} optimize\n");
}

}  // namespace
}  // namespace fleetrun::runtime::insert_all_reduce_test
