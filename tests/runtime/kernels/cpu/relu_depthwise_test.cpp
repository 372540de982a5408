#include <doctest/doctest.h>

#include <cmath>
#include <map>

#include "runtime/tensor/philox.h"
#include "support/run_op.h"

namespace fleetrun::runtime::relu_depthwise_test {
namespace {

using test::Floats;
using test::Given;

Given random(const Shape& shape, std::uint64_t stream) {
  Floats values(static_cast<std::size_t>(count_of(shape)));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = unit_float(philox(4, stream, i)[0]) - 0.5F;
  return {shape, values};
}

const Shape kX = {3, 40, 35, 70}, kW = {40, 1, 3, 3}, kY = {3, 40, 18, 35};

// y, dx, dw and db on a team of that many threads.
std::map<std::string, Floats> results_of(int team) {
  const auto device = make_cpu_device();
  device->enter_thread(team);
  const Given x = random(kX, 1), w = random(kW, 2), dy = random(kY, 3);
  const Attributes window = {{"strides", Shape{2, 2}},   {"paddings", Shape{1, 1}},
                             {"dilations", Shape{1, 1}}, {"groups", std::int64_t{40}},
                             {"input_shape", kX},        {"weight_shape", kW}};
  const test::OpRun forward("relu_depthwise", {{"x", x}, {"w", w}}, window, *device);
  const test::OpRun input("relu_depthwise_grad_input", {{"dy", dy}, {"w", w}, {"x", x}}, window, *device);
  const test::OpRun weights("relu_depthwise_grad_weights", {{"x", x}, {"dy", dy}}, window, *device);
  return {{"y", forward.output("y")},
          {"dx", input.output("dx")},
          {"dw", weights.output("dw")},
          {"db", weights.output("db")}};
}

TEST_CASE("relu_depthwise and its gradients have the same bits on any number of threads") {
  const auto alone = results_of(1);
  for (const int team : {2, 3, 7}) CHECK(results_of(team) == alone);
}

TEST_CASE("relu_depthwise keeps NaN, and gives no gradient where x is 0") {
  const Attributes window = {{"strides", Shape{1, 1}},
                             {"paddings", Shape{0, 0}},
                             {"dilations", Shape{1, 1}},
                             {"groups", std::int64_t{2}},
                             {"input_shape", Shape{1, 2, 1, 2}}};
  const Given x = {{1, 2, 1, 2}, Floats{NAN, -1, 0, 2}}, w = {{2, 1, 1, 1}, Floats{3, 4}};
  const Given dy = {{1, 2, 1, 2}, Floats{1, 1, 1, 1}};
  const Floats y = test::run_op("relu_depthwise", {{"x", x}, {"w", w}}, window);
  CHECK(std::isnan(y[0]));
  CHECK(Floats(y.begin() + 1, y.end()) == Floats{0, 0, 8});
  CHECK(test::run_op("relu_depthwise_grad_input", {{"dy", dy}, {"w", w}, {"x", x}}, window) ==
        Floats{0, 0, 0, 4});
}

}  // namespace
}  // namespace fleetrun::runtime::relu_depthwise_test
