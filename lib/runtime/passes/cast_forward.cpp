#include "runtime/passes/cast_forward.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/error/error.h"
#include "base/text/suggest.h"
#include "runtime/passes/amp_lists.h"

namespace fleetrun::runtime {
namespace {

// Inputs that a narrow op reads as they are, as f32.
bool stays_wide(const OpDef& def, const std::string& argument) {
  return def.name == "batch_norm" && argument != "x";
}

std::set<ValueId> named_values(const Program& program, const std::vector<std::string>& names) {
  std::set<ValueId> values;
  for (const std::string& name : names) {
    const ValueId id = program.find(name);
    if (id == kNone) {
      std::vector<std::string> known;
      for (const Value& value : program.values) known.push_back(value.name);
      const auto meant = closest(name, known);
      throw Error(
          ErrorKind::config,
          fmt::format(
              "strategy.amp_configs.custom_black_varnames has {}, and the model has no value of that name{}",
              name, meant ? fmt::format("; did you mean {}?", *meant) : ""));
    }
    values.insert(id);
  }
  return values;
}

class Casting {
 public:
  Casting(Program& program, const OpTable& ops, const job::AmpSpec& amp, DType narrow)
      : program_(program),
        ops_(ops),
        lists_(amp),
        black_values_(named_values(program, amp.custom_black_varnames)),
        narrow_(narrow) {}

  CastCounts run() {
    for (Op& op : std::exchange(program_.ops, {})) place(std::move(op));
    return counts_;
  }

 private:
  void place(Op op) {
    const OpDef& def = find_op(ops_, op.type);
    const AmpColor color = color_of(def, op);
    const DType wanted = color == AmpColor::white ? narrow_ : DType::f32;
    for (std::size_t i = 0; i < op.inputs.size(); ++i)
      if (op.inputs[i] != kNone &&
          !(wanted != DType::f32 && stays_wide(def, def.input_name(static_cast<int>(i)))))
        op.inputs[i] = as(op.inputs[i], wanted, op.role);
    Inference inference(def, program_, op);
    def.infer(inference);
    for (const ValueId id : op.outputs)
      if (id != kNone) made_by_[id] = color;
    ++counts_.ops;
    counts_.narrow += color == AmpColor::white ? 1 : 0;
    program_.ops.push_back(std::move(op));
  }

  // White or black; gray where its inputs leave it as it is, in f32.
  AmpColor color_of(const OpDef& def, const Op& op) const {
    const auto is_black = [&](ValueId id) { return black_values_.count(id) > 0; };
    if (std::any_of(op.inputs.begin(), op.inputs.end(), is_black) ||
        std::any_of(op.outputs.begin(), op.outputs.end(), is_black))
      return AmpColor::black;
    const AmpColor listed = lists_.color_of(OpView(def, program_, op));
    if (listed != AmpColor::gray) return listed;
    const auto reads = [&](AmpColor color) {
      return std::any_of(op.inputs.begin(), op.inputs.end(), [&](ValueId id) {
        const auto maker = made_by_.find(id);
        return maker != made_by_.end() && maker->second == color;
      });
    };
    if (reads(AmpColor::black)) return AmpColor::black;
    return reads(AmpColor::white) ? AmpColor::white : AmpColor::gray;
  }

  // The value in that type; cast unless it has it, or is not a floating-point number.
  ValueId as(ValueId id, DType dtype, Role role) {
    const Value& value = program_.value(id);
    if (value.dtype == dtype || (value.dtype != DType::f32 && value.dtype != narrow_)) return id;
    const auto [known, is_new] = casts_.try_emplace({id, dtype}, kNone);
    if (!is_new) return known->second;
    known->second = program_.add_value({.name = fmt::format("{}.cast_{}", value.name, describe(dtype)),
                                        .dtype = dtype,
                                        .shape = value.shape});
    program_.ops.push_back({.type = "cast",
                            .inputs = {id},
                            .outputs = {known->second},
                            .attributes = {{"dtype", std::string(describe(dtype))}},
                            .role = role});
    ++counts_.casts;
    return known->second;
  }

  Program& program_;
  const OpTable& ops_;
  AmpLists lists_;
  std::set<ValueId> black_values_;
  DType narrow_;
  std::map<ValueId, AmpColor> made_by_;
  std::map<std::pair<ValueId, DType>, ValueId> casts_;
  CastCounts counts_;
};

}  // namespace

CastCounts cast_forward(Program& program, const OpTable& ops, const job::AmpSpec& amp, DType narrow) {
  return Casting(program, ops, amp, narrow).run();
}

}  // namespace fleetrun::runtime
