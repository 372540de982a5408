#include "runtime/compile/check_frozen.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error/error.h"
#include "runtime/graph/builder.h"

namespace fleetrun::runtime {
namespace {

// The statistics of a batch norm follow its weight and bias, and are not frozen by themselves.
bool is_running_statistic(std::string_view name) {
  return name.ends_with(".running_mean") || name.ends_with(".running_var");
}

// A frozen batch norm normalises with its running statistics, and has no gradient then.
void check_batch_norms(const Program& program, const OpTable& ops) {
  std::vector<bool> trained(program.values.size(), false);
  for (const ValueId id : program.of_kind(ValueKind::parameter)) trained[static_cast<std::size_t>(id)] = true;
  for (const Op& op : program.ops) {
    const bool any = std::ranges::any_of(
        op.inputs, [&](ValueId id) { return id != kNone && trained[static_cast<std::size_t>(id)]; });
    if (any && op.type == "batch_norm" && !OpView(find_op(ops, op.type), program, op).flag("training"))
      throw Error(
          ErrorKind::config,
          fmt::format("model.freeze has the batch norm {}, and a layer before it or its own bias is trained",
                      program.value(op.outputs.front()).name),
          "freeze all layers before it, too, or do not freeze it");
    for (const ValueId id : op.outputs)
      if (id != kNone) trained[static_cast<std::size_t>(id)] = any;
  }
}

// "conv1", "layer1": what comes before the first dot in the names of the parameters, frozen ones too, in the order of the model.
std::vector<std::string> layers_of(const Program& program) {
  std::vector<std::string> layers;
  for (const Value& value : program.values) {
    const bool is_weight = value.kind == ValueKind::parameter || value.kind == ValueKind::state;
    if (!is_weight || is_running_statistic(value.name)) continue;
    const std::string layer = value.name.substr(0, value.name.find('.'));
    if (std::ranges::find(layers, layer) == layers.end()) layers.push_back(layer);
  }
  return layers;
}

}  // namespace

void check_frozen(const Program& program, const std::vector<std::string>& frozen,
                  const PassContext& context) {
  if (frozen.empty()) return;
  const std::vector<ValueId> states = program.of_kind(ValueKind::state);
  for (const std::string& pattern : frozen)
    if (std::ranges::none_of(states, [&](ValueId id) {
          const std::string& name = program.value(id).name;
          return !is_running_statistic(name) && is_frozen({pattern}, name);
        }))
      throw Error(
          ErrorKind::config,
          fmt::format(
              "model.freeze has \"{}\", wanted the name of a layer, or a pattern such as \"layer1*\"; the layers are {}",
              pattern, fmt::join(layers_of(program), ", ")));
  const std::size_t trained = program.of_kind(ValueKind::parameter).size();
  if (trained == 0) throw Error(ErrorKind::config, "model.freeze leaves no parameter to train");
  check_batch_norms(program, context.ops);
  context.tell(
      fmt::format("model.freeze: {} parameters are trained, and the others keep their values", trained));
}

}  // namespace fleetrun::runtime
