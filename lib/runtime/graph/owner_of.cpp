#include "runtime/graph/owner_of.h"

#include <algorithm>
#include <optional>

namespace fleetrun::runtime {
namespace {

const std::string kOwner = "owner";

}  // namespace

int owner_of(const Op& op) {
  const auto found = op.attributes.find(kOwner);
  return found == op.attributes.end() ? kNone : static_cast<int>(std::get<std::int64_t>(found->second));
}

int owner_of_user(const Program& program, ValueId value) {
  const Value& used = program.value(value);
  const bool is_of_all = used.kind == ValueKind::state && used.of == kNone;
  std::optional<int> owner;
  for (const Op& op : program.ops) {
    if (std::find(op.inputs.begin(), op.inputs.end(), value) == op.inputs.end()) continue;
    if (is_of_all && op.role == Role::optimize) return kNone;  // of the training as a whole
    const int found = owner_of(op);
    if (owner && found != kNone && found != *owner) return kNone;
    if (!owner) owner = found;
  }
  return owner.value_or(kNone);
}

void set_owner(Op& op, int rank) {
  if (rank == kNone)
    op.attributes.erase(kOwner);
  else
    op.attributes[kOwner] = std::int64_t{rank};
}

}  // namespace fleetrun::runtime
