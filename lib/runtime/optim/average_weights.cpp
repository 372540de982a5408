#include "runtime/optim/average_weights.h"

namespace fleetrun::runtime {
namespace {

const std::string kDecayPow = "ema.decay_pow";

}  // namespace

std::string average_name(const std::string& parameter) { return parameter + ".ema"; }

void append_averages(Builder& builder, double decay) {
  Program& program = builder.program();
  Op op = {.type = "average_weights",
           .inputs = program.of_kind(ValueKind::parameter),
           .attributes = {{"decay", decay}},
           .role = Role::optimize};
  for (const ValueId parameter : program.of_kind(ValueKind::parameter)) {
    const Value value = program.value(parameter);
    op.outputs.push_back(builder.state(average_name(value.name), value.shape, {}, parameter));
  }
  op.inputs.insert(op.inputs.end(), op.outputs.begin(), op.outputs.end());
  const ValueId decay_pow = builder.state(kDecayPow, {1}, {.value = decay}, kNone);
  op.inputs.push_back(decay_pow);
  op.outputs.push_back(decay_pow);
  program.ops.push_back(std::move(op));
}

void read_averages(Program& program) {
  for (const ValueId parameter : program.of_kind(ValueKind::parameter))
    program.value(parameter).name = average_name(program.value(parameter).name);
}

}  // namespace fleetrun::runtime
