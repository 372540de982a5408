// All broadcasts of updated parameters become one op, in the place of the last of them, which waits for all updates. The parameters of one owner are next
// to each other in memory and travel as one message.
//
//   broadcast x=a -> x=a {roots=[1]}
//   broadcast x=b -> x=b {roots=[0]}      =>      contiguous b
//   broadcast x=c -> x=c {roots=[1]}              contiguous a,c
//                                                 broadcast x=b,a,c -> x=b,a,c {roots=[0,1,1]}
#include <map>

#include <fmt/format.h>

#include "runtime/graph/communicator_of.h"
#include "runtime/passes/passes.h"

namespace fleetrun::runtime {

void fuse_broadcasts(Program& program, const PassContext& context) {
  std::map<std::int64_t, std::vector<ValueId>> parameters;  // by owner
  std::vector<Op> ops;
  Op fused = {.type = "broadcast", .role = Role::communication};
  std::size_t before = 0, place = 0;
  for (Op& op : program.ops) {
    if (op.type != "broadcast") {
      ops.push_back(std::move(op));
      continue;
    }
    ++before;
    set_communicator(fused, communicator_of(op));
    place = ops.size();
    const auto& roots = std::get<Shape>(op.attributes.at("roots"));
    for (std::size_t i = 0; i < op.inputs.size(); ++i) parameters[roots[i]].push_back(op.inputs[i]);
  }
  Shape roots;
  for (const auto& [owner, ids] : parameters) {
    program.contiguous.push_back(ids);
    fused.inputs.insert(fused.inputs.end(), ids.begin(), ids.end());
    roots.insert(roots.end(), ids.size(), owner);
  }
  fused.outputs = fused.inputs;
  fused.attributes["roots"] = roots;
  ops.insert(ops.begin() + static_cast<std::ptrdiff_t>(place), std::move(fused));
  program.ops = std::move(ops);
  context.tell(fmt::format("Find broadcast operators: {}, fused into 1.", before));
}

}  // namespace fleetrun::runtime
