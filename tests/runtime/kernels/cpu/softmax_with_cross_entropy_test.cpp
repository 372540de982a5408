#include <doctest/doctest.h>

#include <cmath>

#include "base/error/error.h"
#include "support/run_op.h"

namespace fleetrun::runtime::softmax_with_cross_entropy_test {
namespace {

using test::Floats;
using test::OpRun;
using Labels = std::vector<std::int32_t>;

TEST_CASE("the loss of huge logits is finite") {
  const auto device = make_cpu_device();
  const Floats logits = {1e30F, -1e30F, 1e4F, 1e4F};
  const OpRun run("softmax_with_cross_entropy",
                  {{"logits", {{2, 2}, logits}}, {"label", {{2}, Labels{0, 1}}}}, {}, *device);
  CHECK(run.output("loss")[0] == 0.0F);
  CHECK(run.output("loss")[1] == doctest::Approx(std::log(2.0)));
  CHECK(run.output("softmax") == Floats{1, 0, 0.5F, 0.5F});
}

TEST_CASE("a sample without a label has loss 0 and gradient 0") {
  const auto device = make_cpu_device();
  const OpRun forward("softmax_with_cross_entropy",
                      {{"logits", {{1, 2}, Floats{3, 4}}}, {"label", {{1}, Labels{-1}}}}, {}, *device);
  CHECK(forward.output("loss") == Floats{0});
  CHECK(test::run_op("softmax_with_cross_entropy_grad", {{"softmax", {{1, 2}, Floats{0.25F, 0.75F}}},
                                                         {"label", {{1}, Labels{-1}}},
                                                         {"dloss", {{1}, Floats{1}}}}) == Floats{0, 0});
}

TEST_CASE("a label beyond the classes is bad data, and the sample is named") {
  CHECK_THROWS_WITH_AS(test::run_op("softmax_with_cross_entropy",
                                    {{"logits", {{2, 3}, Floats(6, 0.0F)}}, {"label", {{2}, Labels{2, 7}}}}),
                       "softmax_with_cross_entropy: sample 1 of the batch has label 7, there are 3 classes",
                       Error);
}

}  // namespace
}  // namespace fleetrun::runtime::softmax_with_cross_entropy_test
