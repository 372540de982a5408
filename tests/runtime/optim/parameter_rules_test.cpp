#include "runtime/optim/parameter_rules.h"

#include <doctest/doctest.h>

#include "base/error/error.h"
#include "support/built_model.h"

namespace fleetrun::runtime::parameter_rules_test {
namespace {

test::BuiltModel resnet20(const job::StrategySpec& strategy = {}) {
  return test::build_model(job::ModelName::resnet20, 10, 1, strategy);
}

int excluded_by(const Program& program, const std::vector<std::string>& entries) {
  int count = 0;
  for (const ValueId id : program.of_kind(ValueKind::parameter))
    count += is_excluded(program, id, entries) ? 1 : 0;
  return count;
}

TEST_CASE("parameters have Fleet's names, too, also where amp casts them") {
  job::StrategySpec amp;
  amp.amp = true;
  for (const auto& built : {resnet20(), resnet20(amp)}) {
    const auto name = [&](const char* parameter) {
      return fleet_name(built.program, built.program.find(parameter));
    };
    CHECK(name("conv1.weight") == "conv2d.w_0");
    CHECK(name("fc.weight") == "fc.w_0");
    CHECK(name("fc.bias") == "fc.b_0");
  }
  CHECK(fleet_name(resnet20().program, resnet20().program.find("bn1.bias")) == "batch_norm.b_0");
}

TEST_CASE("FleetX's list excludes batch norms and biases; names in part exclude, too") {
  const Program program = resnet20().program;
  CHECK(excluded_by(program, {"batch_norm", ".b_0"}) == 43);  // 21 batch norms, and the bias of fc
  CHECK(excluded_by(program, {"layer1."}) == 18);
  CHECK(excluded_by(program, {}) == 0);
  CHECK(without_effect(program, {"fc", "layer9", ".b_0"}) == std::vector<std::string>{"layer9"});
}

// The lines that the optimizer adds after its states, of a program with the parameters `a.w` and `b.w`.
std::string updates(const job::OptimizerSpec& optimizer) {
  Program program;
  Builder builder(program, all_ops());
  const ValueId rate = builder.feed("rate", {1});
  const ValueId a = builder.parameter("a.w", {1}, {}), b = builder.parameter("b.w", {1}, {});
  program.add_value({.name = "frozen.w", .shape = {1}, .kind = ValueKind::state});
  LearningRates rates(builder, optimizer, rate);
  const ValueId of_a = rates.of(a), of_b = rates.of(b);  // both add values
  return program.value(of_a).name + " " + program.value(of_b).name;
}

TEST_CASE("the longest beginning of a parameter's name chooses the factor of its learning rate") {
  CHECK(updates({}) == "rate rate");
  CHECK(updates({.learning_rate_factors = {{"", 2}, {"b", 1}}}) == "learning_rate.times_2 rate");
  CHECK(updates({.learning_rate_factors = {{"a", 0.5}, {"a.w", 3}}}) == "learning_rate.times_3 rate");
  CHECK(updates({.learning_rate_factors = {{"a", 0.5}, {"b", 0.5}}}) ==
        "learning_rate.times_0.5 learning_rate.times_0.5");
}

TEST_CASE("a beginning that no parameter has is refused") {
  CHECK_THROWS_WITH_AS(
      updates({.learning_rate_factors = {{"fc", 2}}}),
      "optimizer.learning_rate_factors has \"fc\", wanted the beginning of the name of a parameter, "
      "such as \"a.w\"",
      Error);
}

TEST_CASE("a frozen parameter has no learning rate, and the error says that it is frozen") {
  CHECK_THROWS_WITH_AS(
      updates({.learning_rate_factors = {{"frozen", 0}}}),
      "optimizer.learning_rate_factors has \"frozen\", which model.freeze keeps as it is, wanted the beginning of the name of a "
      "parameter that is trained, such as \"a.w\"",
      Error);
}

}  // namespace
}  // namespace fleetrun::runtime::parameter_rules_test
