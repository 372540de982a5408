#include "runtime/passes/shared/rewrite.h"

#include <algorithm>

#include <fmt/format.h>

namespace fleetrun::runtime {
namespace {

constexpr OpId kSeveral = -2;  // in place of a writer

}  // namespace

bool device_has_all(const PassContext& context, std::string_view pass,
                    std::initializer_list<const char*> ops) {
  for (const char* op : ops) {
    if (context.device_has(op)) continue;
    context.tell(fmt::format("{}: this device has no {}, nothing is fused", pass, op));
    return false;
  }
  return true;
}

void tell_found(const PassContext& context, std::string_view pass, int forward, int backward) {
  context.tell(fmt::format("{}: detected {} subgraphs", pass, forward));
  context.tell(fmt::format("{}: detected {} subgraphs in the backward part", pass, backward));
}

Rewrite::Rewrite(Program& program, const OpTable& ops)
    : program_(program),
      ops_(ops),
      writer_(program.values.size(), kNone),
      readers_(program.values.size()),
      gone_(program.ops.size(), false) {
  for (OpId op = 0; op < size(); ++op) {
    for (const ValueId id : program.op(op).inputs)
      if (id != kNone) readers_[static_cast<std::size_t>(id)].push_back(op);
    for (const ValueId id : program.op(op).outputs) {
      if (id == kNone) continue;
      OpId& writer = writer_[static_cast<std::size_t>(id)];
      writer = writer == kNone ? op : kSeveral;
    }
  }
  for (const ValueId id : program.fetches) readers_[static_cast<std::size_t>(id)].push_back(kNone);
}

OpView Rewrite::view(OpId op) const {
  return {find_op(ops_, program_.op(op).type), program_, program_.op(op)};
}

Op Rewrite::make(const std::string& type, const Arguments& inputs, const Arguments& outputs,
                 Attributes attributes, Role role) const {
  const OpDef& def = find_op(ops_, type);
  Op op = {.type = type,
           .inputs = std::vector<ValueId>(def.inputs.size(), kNone),
           .outputs = std::vector<ValueId>(def.outputs.size(), kNone),
           .attributes = std::move(attributes),
           .role = role};
  for (const auto& [name, id] : inputs) op.inputs.at(static_cast<std::size_t>(def.input_index(name))) = id;
  for (const auto& [name, id] : outputs) op.outputs.at(static_cast<std::size_t>(def.output_index(name))) = id;
  return op;
}

OpId Rewrite::writer(ValueId id) const { return std::max(writer_.at(static_cast<std::size_t>(id)), kNone); }

OpId Rewrite::writer_of_type(ValueId id, std::string_view type) const {
  const OpId op = writer(id);
  return op != kNone && there(op) && program_.op(op).type == type ? op : kNone;
}

OpId Rewrite::writer_for_one(ValueId id, std::string_view type) const {
  return only_reader(id) == kNone ? kNone : writer_of_type(id, type);
}

OpId Rewrite::only_reader(ValueId id) const {
  const std::vector<OpId>& readers = readers_.at(static_cast<std::size_t>(id));
  if (readers.size() != 1 || program_.value(id).kind != ValueKind::activation) return kNone;
  return readers.front();
}

void Rewrite::replace(const std::vector<OpId>& parts, OpId place, Op fused) {
  for (const OpId part : parts) gone_.at(static_cast<std::size_t>(part)) = true;
  placed_.emplace_back(place, std::move(fused));
}

void Rewrite::redirect(OpId reader, ValueId from, ValueId to) {
  std::vector<ValueId>& inputs = program_.ops.at(static_cast<std::size_t>(reader)).inputs;
  std::replace(inputs.begin(), inputs.end(), from, to);
}

void Rewrite::finish() {
  for (auto& [place, fused] : placed_) {
    program_.ops[static_cast<std::size_t>(place)] = std::move(fused);
    gone_[static_cast<std::size_t>(place)] = false;
  }
  std::vector<Op> ops;
  for (std::size_t op = 0; op < gone_.size(); ++op)
    if (!gone_[op]) ops.push_back(std::move(program_.ops[op]));
  program_.ops = std::move(ops);
}

int rewrite_each(Program& program, const OpTable& ops, std::string_view type,
                 bool (*rewrite_one)(Rewrite& rewrite, OpId op)) {
  Rewrite rewrite(program, ops);
  int rewritten = 0;
  for (OpId op = 0; op < rewrite.size(); ++op)
    if (rewrite.there(op) && program.op(op).type == type) rewritten += rewrite_one(rewrite, op);
  rewrite.finish();
  return rewritten;
}

}  // namespace fleetrun::runtime
