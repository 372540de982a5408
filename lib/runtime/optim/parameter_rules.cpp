#include "runtime/optim/parameter_rules.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error/error.h"

namespace fleetrun::runtime {
namespace {

constexpr const char* kFactors = "optimizer.learning_rate_factors";

// The longest beginning of the name that `factors` has; its end without one.
auto factor_of(const std::map<std::string, double>& factors, const std::string& name) {
  auto longest = factors.end();
  for (auto one = factors.begin(); one != factors.end(); ++one)
    if (name.starts_with(one->first) &&
        (longest == factors.end() || one->first.size() > longest->first.size()))
      longest = one;
  return longest;
}

bool excludes(const std::string& entry, const Program& program, ValueId parameter) {
  return program.value(parameter).name.find(entry) != std::string::npos ||
         fleet_name(program, parameter).find(entry) != std::string::npos;
}

}  // namespace

std::string fleet_name(const Program& program, ValueId parameter) {
  for (const Op& op : program.ops) {
    const auto found = std::find(op.inputs.begin(), op.inputs.end(), parameter);
    if (found == op.inputs.end()) continue;
    if (op.type == "cast") return fleet_name(program, op.outputs.front());
    const OpDef& def = find_op(all_ops(), op.type);
    const std::string argument = def.input_name(static_cast<int>(found - op.inputs.begin()));
    return op.type + (argument == "b" || argument == "bias" ? ".b_0" : ".w_0");
  }
  return "";
}

bool is_excluded(const Program& program, ValueId parameter, const std::vector<std::string>& excluded) {
  return std::any_of(excluded.begin(), excluded.end(),
                     [&](const std::string& entry) { return excludes(entry, program, parameter); });
}

std::vector<std::string> without_effect(const Program& program, const std::vector<std::string>& excluded) {
  const std::vector<ValueId> parameters = program.of_kind(ValueKind::parameter);
  std::vector<std::string> useless;
  for (const std::string& entry : excluded)
    if (std::none_of(parameters.begin(), parameters.end(),
                     [&](ValueId parameter) { return excludes(entry, program, parameter); }))
      useless.push_back(entry);
  return useless;
}

LearningRates::LearningRates(Builder& builder, const job::OptimizerSpec& optimizer, ValueId learning_rate)
    : builder_(builder), factors_(optimizer.learning_rate_factors), learning_rate_(learning_rate) {
  const Program& program = builder.program();
  const std::vector<ValueId> parameters = program.of_kind(ValueKind::parameter);
  const auto names_one_of = [&](const std::vector<ValueId>& values, const std::string& name) {
    return std::ranges::any_of(values, [&](ValueId id) { return program.value(id).name.starts_with(name); });
  };
  for (const auto& [name, factor] : factors_) {
    if (names_one_of(parameters, name)) continue;
    const bool is_frozen = names_one_of(program.of_kind(ValueKind::state), name);
    throw Error(
        ErrorKind::config,
        fmt::format("{} has \"{}\"{}, wanted the beginning of the name of a parameter{}, such as \"{}\"",
                    kFactors, name, is_frozen ? ", which model.freeze keeps as it is" : "",
                    is_frozen ? " that is trained" : "", program.value(parameters.front()).name));
  }
}

ValueId LearningRates::of(ValueId parameter) {
  const auto found = factor_of(factors_, builder_.program().value(parameter).name);
  if (found == factors_.end() || found->second == 1) return learning_rate_;
  const auto [scaled, is_new] = scaled_.try_emplace(found->second, kNone);
  if (is_new)
    scaled->second = builder_
                         .add({.type = "scale",
                               .inputs = {{"x", learning_rate_}},
                               .attributes = {{"scale", found->second}, {"bias", 0.0}},
                               .role = Role::optimize,
                               .name = fmt::format("learning_rate.times_{}", found->second)})
                         .front();
  return scaled->second;
}

}  // namespace fleetrun::runtime
