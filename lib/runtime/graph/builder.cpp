#include "runtime/graph/builder.h"

#include <fnmatch.h>

#include <algorithm>

#include <fmt/format.h>

#include "base/error/error.h"

namespace fleetrun::runtime {
namespace {

std::vector<ValueId> ordered_inputs(const OpDef& def, const Arguments& arguments) {
  std::vector<ValueId> inputs(def.inputs.size(), kNone);
  for (const auto& [name, value] : arguments) {
    const int index = def.input_index(name);
    if (index < 0) throw Error(ErrorKind::internal, fmt::format("op {} has no input {}", def.name, name));
    inputs[static_cast<std::size_t>(index)] = value;
  }
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i] == kNone && !def.input_optional(static_cast<int>(i)))
      throw Error(ErrorKind::internal,
                  fmt::format("op {} is used without its input {}", def.name, def.inputs[i]));
  return inputs;
}

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

bool is_frozen(const std::vector<std::string>& patterns, const std::string& parameter) {
  return std::ranges::any_of(patterns, [&](const std::string& pattern) {
    return ::fnmatch(pattern.c_str(), parameter.c_str(), 0) == 0 ||
           ::fnmatch((pattern + ".*").c_str(), parameter.c_str(), 0) == 0;
  });
}

ValueId Builder::feed(const std::string& name, Shape shape, DType dtype) {
  return program_.add_value(
      {.name = name, .dtype = dtype, .shape = std::move(shape), .kind = ValueKind::feed});
}

ValueId Builder::parameter(const std::string& name, Shape shape, Init init) {
  const ValueKind kind = is_frozen(frozen_, name) ? ValueKind::state : ValueKind::parameter;
  return program_.add_value({.name = name, .shape = std::move(shape), .kind = kind, .init = init});
}

ValueId Builder::state(const std::string& name, Shape shape, Init init, ValueId of) {
  return program_.add_value(
      {.name = name, .shape = std::move(shape), .kind = ValueKind::state, .of = of, .init = init});
}

std::vector<ValueId> Builder::make_outputs(const OpDef& def, const Request& request,
                                           const std::vector<ValueId>& inputs) {
  std::vector<ValueId> outputs(def.outputs.size(), kNone);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const std::string name = def.output_name(static_cast<int>(i));
    if (!request.outputs.empty() && !contains(request.outputs, name)) continue;
    if (contains(def.in_place, name)) {
      outputs[i] = inputs.at(static_cast<std::size_t>(def.input_index(name)));
    } else {
      const bool alone = def.outputs.size() == 1 || request.outputs.size() == 1;
      outputs[i] =
          program_.add_value({.name = alone ? request.name : fmt::format("{}.{}", request.name, name)});
    }
  }
  return outputs;
}

std::vector<ValueId> Builder::add(const Request& request) {
  const OpDef& def = find_op(ops_, request.type);
  const std::vector<ValueId> inputs = ordered_inputs(def, request.inputs);
  Op op = {.type = request.type,
           .inputs = inputs,
           .outputs = make_outputs(def, request, inputs),
           .attributes = request.attributes,
           .role = request.role};
  Inference inference(def, program_, op);
  def.infer(inference);
  std::vector<ValueId> outputs = op.outputs;
  program_.ops.push_back(std::move(op));
  return outputs;
}

ValueId Builder::op(const std::string& name, const std::string& type, const Arguments& inputs,
                    Attributes attributes) {
  return add({.type = type, .inputs = inputs, .attributes = std::move(attributes), .name = name}).front();
}

}  // namespace fleetrun::runtime
