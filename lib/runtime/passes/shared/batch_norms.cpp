#include "runtime/passes/shared/batch_norms.h"

namespace fleetrun::runtime {
namespace {

// The arguments of an op by name, with `others` added or in place of those of the same name.
Arguments with(Arguments arguments, const Arguments& others) {
  for (const auto& other : others) arguments.push_back(other);  // make_op takes the last of a name
  return arguments;
}

Arguments inputs_of(const OpView& op, std::initializer_list<const char*> names) {
  Arguments found;
  for (const char* name : names) found.emplace_back(name, op.input_id(name));
  return found;
}

Arguments outputs_of(const OpView& op, std::initializer_list<const char*> names) {
  Arguments found;
  for (const char* name : names) found.emplace_back(name, op.output_id(name));
  return found;
}

}  // namespace

OpId trained_batch_norm(const Rewrite& rewrite, ValueId value) {
  const OpId norm = rewrite.writer_for_one(value, "batch_norm");
  return norm != kNone && rewrite.view(norm).flag("training") ? norm : kNone;
}

OpId gradient_of_batch_norm(const Rewrite& rewrite, const OpView& forward, ValueId dy) {
  for (const OpId reader : rewrite.readers(dy)) {
    if (reader == kNone || rewrite.program().op(reader).type != "batch_norm_grad") continue;
    const OpView norm = rewrite.view(reader);
    if (norm.input_id("dy") == dy && norm.input_id("x") == forward.input_id("x") &&
        norm.input_id("batch_mean") == forward.output_id("batch_mean"))
      return reader;
  }
  return kNone;
}

Op fused_batch_norm(const Rewrite& rewrite, OpId norm, const std::string& type, const Arguments& besides,
                    ValueId y) {
  const OpView plain = rewrite.view(norm);
  return rewrite.make(
      type, with(inputs_of(plain, {"x", "scale", "bias", "mean", "variance"}), besides),
      with(outputs_of(plain, {"mean", "variance", "batch_mean", "batch_variance"}), {{"y", y}}),
      plain.op().attributes, plain.op().role);
}

Op fused_batch_norm_grad(const Rewrite& rewrite, OpId norm, const std::string& type, const Arguments& inputs,
                         const Arguments& outputs) {
  const OpView plain = rewrite.view(norm);
  return rewrite.make(
      type, with(inputs_of(plain, {"x", "dy", "scale", "batch_mean", "batch_variance"}), inputs),
      with(outputs_of(plain, {"dx", "dscale", "dbias"}), outputs), plain.op().attributes, plain.op().role);
}

}  // namespace fleetrun::runtime
