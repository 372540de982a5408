#include "runtime/optim/merge_gradients.h"

#include <algorithm>

namespace fleetrun::runtime {
namespace {

const std::string kMerge = "merge_gradient";

// The backward part makes and reads `made` in place of `gradient`.
void replace_in_backward(Program& program, ValueId gradient, ValueId made) {
  for (Op& op : program.ops) {
    if (op.role != Role::backward) continue;
    std::replace(op.inputs.begin(), op.inputs.end(), gradient, made);
    std::replace(op.outputs.begin(), op.outputs.end(), gradient, made);
  }
}

void insert_after_writer(Program& program, ValueId made, Op op) {
  const auto writer = std::find_if(program.ops.begin(), program.ops.end(), [made](const Op& one) {
    return std::find(one.outputs.begin(), one.outputs.end(), made) != one.outputs.end();
  });
  program.ops.insert(writer + 1, std::move(op));
}

}  // namespace

void merge_gradients(Builder& builder, const job::GradientMergeSpec& merge) {
  Program& program = builder.program();
  for (const ValueId gradient : program.of_kind(ValueKind::gradient)) {
    const Value value = program.value(gradient);
    const ValueId made = program.add_value(
        {.name = value.name + ".step", .dtype = value.dtype, .shape = value.shape, .of = value.of});
    const ValueId merged = builder.state(program.value(value.of).name + ".merged", value.shape, {}, value.of);
    replace_in_backward(program, gradient, made);
    insert_after_writer(program, made,
                        {.type = kMerge,
                         .inputs = {made, merged},
                         .outputs = {gradient, merged},
                         .attributes = {{"k_steps", std::int64_t{merge.k_steps}},
                                        {"scale", merge.avg ? 1.0 / merge.k_steps : 1.0}},
                         .role = Role::backward});
  }
}

std::vector<ValueId> merged_gradients_of(const Program& program) {
  std::vector<ValueId> merged;
  for (const Op& op : program.ops)
    if (op.type == kMerge) merged.push_back(op.outputs.back());
  return merged;
}

std::int64_t steps_per_update(const Program& program) {
  for (const Op& op : program.ops)
    if (op.type == kMerge) return std::get<std::int64_t>(op.attributes.at("k_steps"));
  return 1;
}

}  // namespace fleetrun::runtime
