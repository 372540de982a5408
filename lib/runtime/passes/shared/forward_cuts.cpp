#include "runtime/passes/shared/forward_cuts.h"

#include <algorithm>

namespace fleetrun::runtime {
namespace {

std::size_t position(int index) { return static_cast<std::size_t>(index); }

}  // namespace

int count_forward_ops(const Program& program) {
  const auto first = std::find_if(program.ops.begin(), program.ops.end(), [](const Op& op) {
    return op.role == Role::backward || op.role == Role::optimize;
  });
  return static_cast<int>(first - program.ops.begin());
}

std::vector<Cut> forward_cuts(const Program& program) {
  const int ops = count_forward_ops(program);
  std::vector<OpId> last_use(program.values.size(), kNone), writer(program.values.size(), kNone);
  for (OpId id = 0; id < ops; ++id) {
    for (const ValueId value : program.op(id).inputs)
      if (value != kNone) last_use[position(value)] = id;
    for (const ValueId value : program.op(id).outputs)
      if (value != kNone && writer[position(value)] == kNone) writer[position(value)] = id;
  }
  std::vector<Cut> cuts;
  std::vector<ValueId> alive;
  for (OpId id = 0; id + 1 < ops; ++id) {
    for (const ValueId value : program.op(id).outputs)
      if (value != kNone && program.value(value).kind == ValueKind::activation &&
          writer[position(value)] == id)
        alive.push_back(value);
    std::erase_if(alive, [&](ValueId value) { return last_use[position(value)] <= id; });
    if (alive.size() == 1) cuts.push_back({id, alive.front()});
  }
  return cuts;
}

}  // namespace fleetrun::runtime
