#include "runtime/passes/shared/gradient_groups.h"

#include <algorithm>
#include <map>

namespace fleetrun::runtime {
namespace {

constexpr double kMegabyte = 1024.0 * 1024.0;

std::vector<ValueId> in_order_of_production(const Program& program) {
  std::vector<ValueId> order;
  for (const Op& op : program.ops)
    for (const ValueId id : op.outputs)
      if (op.role == Role::backward && id != kNone && program.value(id).kind == ValueKind::gradient)
        order.push_back(id);
  return order;
}

// What a cast is a cast of; the value itself when it is none.
ValueId before_cast(const Program& program, ValueId id) {
  for (const Op& op : program.ops)
    if (op.type == "cast" && op.outputs.front() == id) return op.inputs.front();
  return id;
}

// Of each parameter, the one that gives its layer the name.
std::map<ValueId, ValueId> layers(const Program& program, const OpTable& ops) {
  std::map<ValueId, ValueId> layer;
  for (const Op& op : program.ops) {
    const OpDef& def = find_op(ops, op.type);
    if (op.role != Role::forward || def.input_index("w") < 0) continue;
    const OpView view(def, program, op);
    for (const char* argument : {"w", "b"})
      if (def.input_index(argument) >= 0 && view.has_input(argument))
        layer[before_cast(program, view.input_id(argument))] = before_cast(program, view.input_id("w"));
  }
  return layer;
}

std::size_t bytes_of(const Program& program, const std::vector<ValueId>& ids) {
  std::size_t bytes = 0;
  for (const ValueId id : ids)
    bytes += static_cast<std::size_t>(count_of(program.value(id).shape)) * size_of(program.value(id).dtype);
  return bytes;
}

std::vector<ValueId> joined(const GradientGroups& groups) {
  std::vector<ValueId> all;
  for (const auto& group : groups) all.insert(all.end(), group.begin(), group.end());
  return all;
}

GradientGroups everything_by_name(const Program& program, const GradientGroups& layers) {
  std::vector<ValueId> all = joined(layers);
  std::sort(all.begin(), all.end(), [&](ValueId a, ValueId b) {
    return program.value(program.value(a).of).name < program.value(program.value(b).of).name;
  });
  return {all};
}

// Takes layers off the end while they fit; at least one.
GradientGroups take_last(const Program& program, GradientGroups& layers, double megabytes) {
  GradientGroups last;
  double bytes = 0;
  while (!layers.empty()) {
    bytes += static_cast<double>(bytes_of(program, layers.back()));
    if (!last.empty() && bytes > megabytes * kMegabyte) break;
    last.insert(last.begin(), layers.back());
    layers.pop_back();
  }
  return last;
}

GradientGroups merged(const Program& program, const GradientGroups& layers, const GroupLimits& limits) {
  GradientGroups groups;
  bool open = false;
  for (const std::vector<ValueId>& layer : layers) {
    if (!open) groups.emplace_back();
    std::vector<ValueId>& group = groups.back();
    group.insert(group.end(), layer.begin(), layer.end());
    const bool many = limits.gradients > 1 && static_cast<double>(group.size()) > limits.gradients;
    const bool large = static_cast<double>(bytes_of(program, group)) / kMegabyte >= limits.megabytes;
    open = !many && !large;
  }
  return groups;
}

GradientGroups split_by_dtype(const Program& program, const GradientGroups& groups) {
  GradientGroups split;
  for (const std::vector<ValueId>& group : groups) {
    const std::size_t first = split.size();
    for (const ValueId id : group) {
      const auto same = std::find_if(
          split.begin() + static_cast<std::ptrdiff_t>(first), split.end(),
          [&](const auto& other) { return program.value(other.front()).dtype == program.value(id).dtype; });
      if (same != split.end())
        same->push_back(id);
      else
        split.push_back({id});
    }
  }
  return split;
}

}  // namespace

GradientGroups layer_groups(const Program& program, const OpTable& ops) {
  const std::map<ValueId, ValueId> layer = layers(program, ops);
  GradientGroups groups;
  std::map<ValueId, std::size_t> group_of;  // by the name giver
  for (const ValueId gradient : in_order_of_production(program)) {
    const ValueId parameter = program.value(gradient).of;
    const auto found = layer.find(parameter);
    const ValueId name = found == layer.end() ? parameter : found->second;
    const auto [place, is_new] = group_of.try_emplace(name, groups.size());
    if (is_new) groups.emplace_back();
    groups[place->second].push_back(gradient);
  }
  return groups;
}

GradientGroups gradient_groups(const Program& program, const OpTable& ops, const GroupLimits& limits) {
  GradientGroups layers = layer_groups(program, ops);
  if (layers.empty()) return {};
  if (limits.megabytes == 0) return split_by_dtype(program, everything_by_name(program, layers));
  if (limits.megabytes < 0) return split_by_dtype(program, layers);
  GradientGroups last;
  if (limits.last_megabytes) last = take_last(program, layers, *limits.last_megabytes);
  GradientGroups groups = merged(program, layers, limits);
  if (!last.empty()) groups.push_back(joined(last));
  return split_by_dtype(program, groups);
}

}  // namespace fleetrun::runtime
