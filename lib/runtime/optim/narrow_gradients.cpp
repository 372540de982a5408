#include "runtime/optim/narrow_gradients.h"

#include <algorithm>
#include <string>

namespace fleetrun::runtime {
namespace {

// Returns the narrow gradient, which is what travels.
ValueId narrow_one(Program& program, ValueId gradient, DType narrow) {
  const Value value = program.value(gradient);
  const std::string type(describe(narrow));
  program.value(gradient).kind = ValueKind::activation;  // what it is the gradient of stays with it
  const ValueId small = program.add_value({.name = value.name + "." + type,
                                           .dtype = narrow,
                                           .shape = value.shape,
                                           .kind = ValueKind::gradient,
                                           .of = value.of});
  const auto writer = std::find_if(program.ops.begin(), program.ops.end(), [gradient](const Op& op) {
    return std::find(op.outputs.begin(), op.outputs.end(), gradient) != op.outputs.end();
  });
  program.ops.insert(writer + 1, {.type = "cast_gradient",
                                  .inputs = {gradient, value.of},
                                  .outputs = {small},
                                  .attributes = {{"dtype", type}},
                                  .role = Role::backward});
  return small;
}

}  // namespace

std::vector<ValueId> narrow_gradients(Builder& builder, DType narrow) {
  Program& program = builder.program();
  std::vector<ValueId> summed;
  for (const ValueId gradient : program.of_kind(ValueKind::gradient)) {
    const std::string name = program.value(gradient).name;
    const ValueId small = narrow_one(program, gradient, narrow);
    const ValueId wide = builder
                             .add({.type = "cast",
                                   .inputs = {{"x", small}},
                                   .attributes = {{"dtype", std::string("f32")}},
                                   .role = Role::optimize,
                                   .name = name + ".summed"})
                             .front();
    program.value(wide).of = program.value(small).of;
    summed.push_back(wide);
  }
  return summed;
}

}  // namespace fleetrun::runtime
