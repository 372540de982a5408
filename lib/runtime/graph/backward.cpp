#include "runtime/graph/backward.h"

#include <fmt/format.h>

#include "base/error/error.h"

namespace fleetrun::runtime {
namespace {

class Backward {
 public:
  Backward(Builder& builder, ValueId loss) : builder_(builder), forward_ops_(builder.program().ops.size()) {
    mark_values_that_need_gradients();
    pieces_.resize(program().values.size());
    seed(loss);
  }

  void run() {
    for (std::size_t i = forward_ops_; i-- > 0;) differentiate(static_cast<OpId>(i));
    for (const ValueId parameter : program().of_kind(ValueKind::parameter)) finish_parameter(parameter);
  }

  Program& program() { return builder_.program(); }
  Builder& builder() { return builder_; }

  bool needs_gradient(ValueId id) const {
    return id != kNone && needs_gradient_.at(static_cast<std::size_t>(id));
  }

  void add_piece(ValueId value, ValueId gradient) {
    pieces_.at(static_cast<std::size_t>(value)).push_back(gradient);
  }

  // The whole gradient of a value that was written by one op and perhaps read by many; kNone when none flows.
  ValueId gradient_of(ValueId value) {
    if (!needs_gradient(value)) return kNone;
    std::vector<ValueId>& pieces = pieces_.at(static_cast<std::size_t>(value));
    if (pieces.empty()) return kNone;
    const std::string name = program().value(value).name + "@GRAD";
    ValueId sum = pieces.front();
    for (std::size_t i = 1; i < pieces.size(); ++i) {
      const bool last = i + 1 == pieces.size();
      sum = builder_
                .add({.type = "elementwise_add",
                      .inputs = {{"x", sum}, {"y", pieces[i]}},
                      .role = Role::backward,
                      .name = last ? name : fmt::format("{}.sum{}", name, i)})
                .front();
    }
    program().value(sum).name = name;
    pieces = {sum};
    return sum;
  }

 private:
  void mark_values_that_need_gradients() {
    needs_gradient_.resize(program().values.size(), false);
    for (const ValueId parameter : program().of_kind(ValueKind::parameter))
      needs_gradient_[static_cast<std::size_t>(parameter)] = true;
    for (const Op& op : program().ops) {
      if (find_op(builder_.ops(), op.type).gradient == nullptr) continue;
      bool any = false;
      for (const ValueId input : op.inputs) any = any || needs_gradient(input);
      for (const ValueId output : op.outputs)
        if (output != kNone) needs_gradient_[static_cast<std::size_t>(output)] = any;
    }
  }

  void seed(ValueId loss) {
    add_piece(loss, builder_
                        .add({.type = "fill",
                              .attributes = {{"shape", program().value(loss).shape}, {"value", 1.0}},
                              .role = Role::backward,
                              .name = program().value(loss).name + "@GRAD"})
                        .front());
  }

  void differentiate(OpId id);

  void finish_parameter(ValueId parameter) {
    const ValueId gradient = gradient_of(parameter);
    if (gradient == kNone)
      throw Error(ErrorKind::internal,
                  fmt::format("no gradient reaches parameter {}", program().value(parameter).name));
    program().value(gradient).kind = ValueKind::gradient;
    program().value(gradient).of = parameter;
  }

  Builder& builder_;
  std::size_t forward_ops_;
  std::vector<bool> needs_gradient_;          // by ValueId, forward values only
  std::vector<std::vector<ValueId>> pieces_;  // by ValueId: gradients that its readers gave
};

class Rule : public GradientRule {
 public:
  Rule(Backward& backward, OpView op) : backward_(backward), op_(op) {}

  const OpView& forward() const override { return op_; }

  bool wants(std::string_view input) const override { return backward_.needs_gradient(op_.input_id(input)); }

  ValueId output_gradient(std::string_view output) const override {
    return backward_.gradient_of(op_.output_id(output));
  }

  std::vector<ValueId> emit(const std::string& type, const Arguments& inputs, Attributes attributes,
                            const std::vector<std::string>& outputs) override {
    return backward_.builder().add({.type = type,
                                    .inputs = inputs,
                                    .attributes = std::move(attributes),
                                    .role = Role::backward,
                                    .name = fmt::format("{}@{}", first_output_name(), type),
                                    .outputs = outputs});
  }

  void set_gradient(std::string_view input, ValueId gradient) override {
    const ValueId value = op_.input_id(input);
    const Value& forward = backward_.program().value(value);
    const Value& backward = backward_.program().value(gradient);
    if (forward.shape != backward.shape)
      throw Error(
          ErrorKind::internal,
          fmt::format("op {}: the gradient of {} is {}, must be {} like {} itself", op_.def().name, input,
                      runtime::describe(backward.shape), runtime::describe(forward.shape), forward.name));
    backward_.add_piece(value, gradient);
  }

 private:
  std::string first_output_name() const {
    for (const ValueId id : op_.op().outputs)
      if (id != kNone) return backward_.program().value(id).name;
    return op_.def().name;
  }

  Backward& backward_;
  OpView op_;
};

void Backward::differentiate(OpId id) {
  const Op op = program().op(id);  // a copy: rules append to the vector it lives in
  const OpDef& def = find_op(builder_.ops(), op.type);
  bool reached = false;
  for (const ValueId output : op.outputs) reached = gradient_of(output) != kNone || reached;
  if (!reached || def.gradient == nullptr) return;
  Rule rule(*this, OpView(def, program(), op));
  def.gradient(rule);
}

}  // namespace

void append_backward(Builder& builder, ValueId loss) { Backward(builder, loss).run(); }

}  // namespace fleetrun::runtime
