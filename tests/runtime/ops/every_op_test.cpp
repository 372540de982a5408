#include <doctest/doctest.h>

#include "support/gradient_check.h"
#include "support/test_device.h"

namespace fleetrun::runtime::every_op_test {
namespace {

using test::check_gradient;

TEST_CASE("the gradient of every op agrees with finite differences") {
  const auto device = test::make_test_device();
  for (const auto& entry : all_ops()) {
    const auto& name = entry.first;
    const OpDef& def = entry.second;
    if (def.gradient == nullptr || device->kernels().count(name) == 0) continue;
    INFO("op " << name);
    REQUIRE((def.samples != nullptr));
    const std::vector<Sample> samples = def.samples();
    REQUIRE(!samples.empty());
    for (std::size_t i = 0; i < samples.size(); ++i) {
      INFO("sample " << i);
      CHECK(check_gradient(all_ops(), name, samples[i], *device) == "");
    }
  }
}

// The words of the checker for a table in which one rule was made wrong.
std::string verdict_on(const std::string& op, void (*wrong_rule)(GradientRule&)) {
  OpTable broken = all_ops();
  broken.at(op).gradient = wrong_rule;
  const auto device = make_cpu_device();
  return check_gradient(broken, op, broken.at(op).samples().front(), *device);
}

TEST_CASE("a wrong gradient rule is found") {
  SUBCASE("relu lets everything through") {
    const auto identity = [](GradientRule& rule) { rule.set_gradient("x", rule.output_gradient("y")); };
    CHECK(verdict_on("relu", identity).starts_with("relu, output y: the gradient of x along direction"));
  }
  SUBCASE("fc forgets its bias") {
    const auto without_bias = [](GradientRule& rule) {
      const OpView& op = rule.forward();
      const ValueId dy = rule.output_gradient("y");
      rule.set_gradient("x", rule.emit("fc_grad_input", {{"dy", dy}, {"w", op.input_id("w")}},
                                       {{"input_shape", op.input("x").shape}})[0]);
      rule.set_gradient("w",
                        rule.emit("fc_grad_weights", {{"x", op.input_id("x")}, {"dy", dy}}, {}, {"dw"})[0]);
    };
    CHECK(verdict_on("fc", without_bias) == "fc, output y: there is no gradient of b");
  }
  SUBCASE("conv2d counts its weight twice") {
    const auto doubled = [](GradientRule& rule) {
      const OpView& op = rule.forward();
      const ValueId dy = rule.output_gradient("y");
      Attributes attributes = op.op().attributes;
      attributes["input_shape"] = op.input("x").shape;
      attributes["weight_shape"] = op.input("w").shape;
      rule.set_gradient(
          "b", rule.emit("conv2d_grad_weights", {{"x", op.input_id("x")}, {"dy", dy}}, attributes)[1]);
      rule.set_gradient(
          "x", rule.emit("conv2d_grad_input", {{"dy", dy}, {"w", op.input_id("w")}}, attributes, {"dx"})[0]);
      const ValueId dw =
          rule.emit("conv2d_grad_weights", {{"x", op.input_id("x")}, {"dy", dy}}, attributes, {"dw"})[0];
      rule.set_gradient("w", rule.emit("elementwise_add", {{"x", dw}, {"y", dw}}, {})[0]);
    };
    CHECK(verdict_on("conv2d", doubled).starts_with("conv2d, output y: the gradient of w along direction"));
  }
  SUBCASE("mean forgets to divide") {
    const auto undivided = [](GradientRule& rule) {
      rule.set_gradient(
          "x", rule.emit("fill", {}, {{"value", 1.0}, {"shape", rule.forward().input("x").shape}})[0]);
    };
    CHECK(verdict_on("mean", undivided).starts_with("mean, output y: the gradient of x along direction"));
  }
}

TEST_CASE("every op has a kernel on the CPU, and every kernel an op") {
  const auto device = make_cpu_device();
  for (const auto& entry : all_ops()) {
    const auto& name = entry.first;
    const OpDef& def = entry.second;
    INFO("op " << name);
    CHECK(def.name == name);
    CHECK(device->kernels().count(name) == 1);
  }
  CHECK(device->kernels().size() == all_ops().size());
}

}  // namespace
}  // namespace fleetrun::runtime::every_op_test
