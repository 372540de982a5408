#include "runtime/exec/propagate_layouts.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error/error.h"

namespace fleetrun::runtime {
namespace {

bool is_weight(const Value& value) {
  return value.kind == ValueKind::parameter || value.kind == ValueKind::state;
}

bool kept(const Value& value) { return is_weight(value) || value.kind == ValueKind::gradient; }

class Propagation {
 public:
  Propagation(Program& program, const OpTable& ops, Device& device, const ParameterLayouts& given)
      : program_(program), ops_(ops), device_(device), decided_(program.values.size(), false) {
    for (std::size_t i = 0; i < program.values.size(); ++i)
      if (const auto found = given.find(program.values[i].name); found != given.end())
        decide(static_cast<ValueId>(i), found->second);
  }

  void run() {
    std::vector<Op> ops = std::move(program_.ops);
    program_.ops.clear();
    for (Op& op : ops) {
      if (!waits_for_reader(op)) {
        place(std::move(op));
        continue;
      }
      const ValueId made = op.outputs.front();
      waiting_[made] = std::move(op);
    }
    for (auto& [id, op] : waiting_) place(std::move(op));  // nobody read it
  }

 private:
  // The parameter, cast parameter or state whose layout this value follows; kNone for feeds and for activations that belong to no
  // parameter. A gradient that a pass has made an activation still belongs to one.
  ValueId leader(ValueId id) const {
    const Value& value = program_.value(id);
    if (!kept(value) && value.of == kNone) return kNone;
    if (value.of == kNone || program_.value(value.of).shape != value.shape) return id;
    if (program_.value(value.of).dtype == value.dtype) return value.of;
    const auto cast = casts_.find({value.of, value.dtype});
    return cast == casts_.end() ? id : cast->second;
  }

  // A cast parameter is laid out as the one wants it that reads the cast.
  bool waits_for_reader(const Op& op) {
    const auto kernel = device_.kernels().find(op.type);
    if (kernel == device_.kernels().end() || !kernel->second.waits_for_reader) return false;
    const ValueId from = op.inputs.front(), to = op.outputs.front();
    if (op.inputs.size() > 1 || !is_weight(program_.value(from))) return false;
    casts_.try_emplace({from, program_.value(to).dtype}, to);
    return !decided(from);
  }

  void make_as(ValueId id, const Layout& wanted) {
    Op op = std::move(waiting_.at(id));
    waiting_.erase(id);
    program_.value(id).layout = wanted;
    place(std::move(op));
    decide(id, Layout(program_.value(id).layout));
  }

  bool decided(ValueId lead) const { return decided_.at(static_cast<std::size_t>(lead)); }

  void decide(ValueId lead, const Layout& layout) {
    decided_.at(static_cast<std::size_t>(lead)) = true;
    for (std::size_t i = 0; i < program_.values.size(); ++i)
      if (leader(static_cast<ValueId>(i)) == lead) program_.values[i].layout = layout;
  }

  LayoutChoice choose(const Op& op, const OpDef& def) {
    const auto kernel = device_.kernels().find(op.type);
    if (kernel == device_.kernels().end())
      throw Error(ErrorKind::internal,
                  fmt::format("op {} has no {} kernel in this build", op.type, device_.name()));
    if (kernel->second.choose_layouts == nullptr)
      return {std::vector<Layout>(op.inputs.size()), std::vector<Layout>(op.outputs.size())};
    LayoutQuery query = {OpView(def, program_, op), {}};
    for (const ValueId id : op.inputs) {
      const ValueId lead = id == kNone ? kNone : leader(id);
      query.input_free.push_back((lead != kNone && !decided(lead)) || waiting_.count(id) > 0);
    }
    return kernel->second.choose_layouts(query, device_);
  }

  void place(Op op) {
    const OpDef& def = find_op(ops_, op.type);
    const LayoutChoice choice = choose(op, def);
    const ArgumentPlaces inputs(def.inputs, op.inputs.size()), outputs(def.outputs, op.outputs.size());
    for (std::size_t i = 0; i < op.inputs.size(); ++i)  // in front of the reorders, which may come after them
      if (waiting_.count(op.inputs[i]) > 0) make_as(op.inputs[i], choice.inputs[i]);
    for (std::size_t i = 0; i < op.inputs.size(); ++i)
      if (op.inputs[i] != kNone)
        op.inputs[i] = input_as(op.inputs[i], choice.inputs[i], op, def, inputs.argument_at(i));
    std::vector<Op> after;
    for (std::size_t i = 0; i < op.outputs.size(); ++i)
      if (op.outputs[i] != kNone)
        op.outputs[i] = output_as(op.outputs[i], choice.outputs[i], op,
                                  in_place(def, def.output_name(outputs.argument_at(i))), after);
    for (const ValueId id : op.outputs) forget_copies(id);
    require_matching_gradients(op, def, inputs);
    program_.ops.push_back(std::move(op));
    for (Op& reorder : after) program_.ops.push_back(std::move(reorder));
  }

  // An update goes through the memory of a parameter and of its gradient element by element.
  void require_matching_gradients(const Op& op, const OpDef& def, const ArgumentPlaces& places) const {
    std::vector<ValueId> parameters, gradients;
    for (std::size_t i = 0; i < op.inputs.size(); ++i) {
      const std::string name = def.input_name(places.argument_at(i));
      if (name == "param") parameters.push_back(op.inputs[i]);
      if (name == "grad") gradients.push_back(op.inputs[i]);
    }
    for (std::size_t i = 0; i < std::min(parameters.size(), gradients.size()); ++i) {
      const Value &parameter = program_.value(parameters[i]), &gradient = program_.value(gradients[i]);
      if (parameter.layout != gradient.layout)
        throw Error(ErrorKind::internal,
                    fmt::format("op {} would combine {} with {}, which has another layout", def.name,
                                parameter.name, gradient.name));
    }
  }

  static bool in_place(const OpDef& def, const std::string& argument) {
    return std::find(def.in_place.begin(), def.in_place.end(), argument) != def.in_place.end();
  }

  ValueId input_as(ValueId id, const Layout& wanted, Op& op, const OpDef& def, int argument) {
    const ValueId lead = leader(id);
    if (lead != kNone && !decided(lead)) decide(lead, wanted);
    if (program_.value(id).layout == wanted) return id;
    if (in_place(def, def.input_name(argument)))
      throw Error(ErrorKind::internal,
                  fmt::format("op {} updates {} in place, but wants it in another layout", def.name,
                              program_.value(id).name));
    for (const Copy& copy : copies_)
      if (copy.of == id && program_.value(copy.value).layout == wanted) return copy.value;
    const ValueId copy = add_copy(id, wanted);
    program_.ops.push_back(reorder(id, copy, op.role));
    program_.ops.back().after = op.after;
    if (!op.after.empty())
      op.after.push_back(copy);  // an op that has its place keeps its reorders in order, too
    copies_.push_back({id, copy});
    return copy;
  }

  ValueId output_as(ValueId id, const Layout& made, const Op& op, bool is_in_place, std::vector<Op>& after) {
    if (is_in_place) return id;
    const ValueId lead = leader(id);
    if (lead == kNone) {
      program_.value(id).layout = made;
      return id;
    }
    if (!decided(lead)) decide(lead, made);
    if (program_.value(id).layout == made) return id;
    const ValueId temporary = add_copy(id, made);
    Op next = reorder(temporary, id, op.role);
    if (!op.after.empty() && !after.empty()) next.after = after.back().outputs;
    after.push_back(std::move(next));
    return temporary;
  }

  ValueId add_copy(ValueId id, const Layout& layout) {
    const Value& value = program_.value(id);
    const std::string base = fmt::format("{}.{}", value.name, layout.plain() ? "plain" : layout.name);
    std::string name = base;
    for (int n = 2; program_.find(name) != kNone; ++n) name = fmt::format("{}.{}", base, n);
    const ValueId copy =
        program_.add_value({.name = name, .dtype = value.dtype, .shape = value.shape, .layout = layout});
    decided_.push_back(false);
    return copy;
  }

  static Op reorder(ValueId from, ValueId to, Role role) {
    return {.type = "reorder", .inputs = {from}, .outputs = {to}, .role = role};
  }

  void forget_copies(ValueId written) {
    std::erase_if(copies_, [&](const Copy& copy) { return copy.of == written; });
  }

  struct Copy {
    ValueId of;
    ValueId value;
  };

  Program& program_;
  const OpTable& ops_;
  Device& device_;
  std::vector<bool> decided_;                           // by ValueId, meaningful for leaders
  std::vector<Copy> copies_;                            // reordered copies that are still up to date
  std::map<ValueId, Op> waiting_;                       // by what they make
  std::map<std::pair<ValueId, DType>, ValueId> casts_;  // of parameters
};

}  // namespace

void propagate_layouts(Program& program, const OpTable& ops, Device& device, const ParameterLayouts& given) {
  Propagation(program, ops, device, given).run();
}

ParameterLayouts parameter_layouts(const Program& program) {
  ParameterLayouts layouts;
  for (const Value& value : program.values)
    if (is_weight(value)) layouts[value.name] = value.layout;
  return layouts;
}

ParameterLayouts summed_layouts(const Program& program) {
  ParameterLayouts layouts = parameter_layouts(program);
  for (const Value& value : program.values)
    if (value.kind == ValueKind::gradient) layouts[value.name] = value.layout;
  for (const Op& op : program.ops) {
    if (op.type != "cast" || program.value(op.inputs.front()).kind != ValueKind::parameter) continue;
    const Value& cast = program.value(op.outputs.front());
    layouts[cast.name] = cast.layout;
  }
  return layouts;
}

}  // namespace fleetrun::runtime
