#include "runtime/compile/same_collectives.h"

#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/error/error.h"

namespace fleetrun::runtime {
namespace {

// "all_reduce w@GRAD f32[32,48]@AB16b16a op=\"sum\""
std::string describe_collective(const Program& program, const Op& op) {
  std::string text = op.type;
  for (const ValueId id : op.inputs) {
    if (id == kNone) continue;
    const Value& value = program.value(id);
    text += fmt::format(" {} {}{}{}", value.name, describe(value.dtype), describe(value.shape),
                        value.layout.plain() ? "" : "@" + value.layout.name);
  }
  for (const auto& [name, attribute] : op.attributes)
    text += fmt::format(" {}={}", name, describe(attribute));
  return text;
}

std::vector<std::string> collectives_of(const Program& program) {
  std::vector<std::string> texts;
  for (const Op& op : program.ops)
    if (op.role == Role::communication) texts.push_back(describe_collective(program, op));
  return texts;
}

}  // namespace

void check_same_collectives(const Program& one, const Program& other) {
  std::vector<std::string> ours = collectives_of(one), theirs = collectives_of(other);
  const std::size_t count = std::max(ours.size(), theirs.size());
  ours.resize(count, "nothing");
  theirs.resize(count, "nothing");
  for (std::size_t i = 0; i < count; ++i)
    if (ours[i] != theirs[i])
      throw Error(
          ErrorKind::internal,
          fmt::format(
              "ranks with one sample less would communicate differently: collective {} is {}, and {} on "
              "the other ranks",
              i, theirs[i], ours[i]),
          "choose a train.global_batch that the number of ranks divides");
}

}  // namespace fleetrun::runtime
