#include "runtime/graph/owner_of.h"

namespace fleetrun::runtime {
namespace {

const std::string kOwner = "owner";

}  // namespace

int owner_of(const Op& op) {
  const auto found = op.attributes.find(kOwner);
  return found == op.attributes.end() ? kNone : static_cast<int>(std::get<std::int64_t>(found->second));
}

int owner_of_user(const Program& program, ValueId value) {
  const Value& found = program.value(value);
  if (found.kind == ValueKind::state && found.of == kNone) return kNone;  // of the whole training or model
  for (const Op& op : program.ops)
    for (const ValueId input : op.inputs)
      if (input == value) return owner_of(op);
  return kNone;
}

void set_owner(Op& op, int rank) { op.attributes[kOwner] = std::int64_t{rank}; }

}  // namespace fleetrun::runtime
