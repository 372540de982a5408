#include "comm/collective.h"

#include <fmt/format.h>

#include "base/error.h"
#include "comm/reduce.h"

namespace fleetrun::comm {
namespace {

void check_slices(const char* name, BufferView all, BufferView mine, int size) {
  if (all.dtype != mine.dtype || all.count != mine.count * static_cast<std::size_t>(size))
    throw Error(ErrorKind::internal,
                fmt::format("{}: all is {} {}, mine is {} {}; all must be {} slices like mine", name,
                            all.count, describe(all.dtype), mine.count, describe(mine.dtype), size));
}

void check_root(const char* name, int root, int size) {
  if (root < 0 || root >= size)
    throw Error(ErrorKind::internal,
                fmt::format("{}: the root is {}, must be 0 to {}", name, root, size - 1));
}

}  // namespace

Collective Collective::all_reduce(BufferView buffer, ReduceOp op) {
  reduce_function(buffer.dtype, op);
  return {.kind = Kind::all_reduce, .buffer = buffer, .op = op};
}

Collective Collective::reduce(BufferView buffer, ReduceOp op, int root, int size) {
  check_root("reduce", root, size);
  reduce_function(buffer.dtype, op);
  return {.kind = Kind::reduce, .buffer = buffer, .op = op, .root = root};
}

Collective Collective::broadcast(BufferView buffer, int root, int size) {
  check_root("broadcast", root, size);
  return {.kind = Kind::broadcast, .buffer = buffer, .root = root};
}

Collective Collective::reduce_scatter(BufferView all, BufferView mine, ReduceOp op, int size) {
  check_slices("reduce_scatter", all, mine, size);
  reduce_function(all.dtype, op);
  return {.kind = Kind::reduce_scatter, .buffer = all, .mine = mine, .op = op};
}

Collective Collective::all_gather(BufferView mine, BufferView all, int size) {
  check_slices("all_gather", all, mine, size);
  return {.kind = Kind::all_gather, .buffer = all, .mine = mine};
}

bool Collective::matches(const Collective& other) const {
  return kind == other.kind && buffer.count == other.buffer.count && buffer.dtype == other.buffer.dtype &&
         op == other.op && root == other.root;
}

std::string_view describe(ReduceOp op) {
  switch (op) {
    case ReduceOp::sum:
      return "sum";
    case ReduceOp::max:
      return "max";
    case ReduceOp::min:
      return "min";
  }
  return "?";
}

std::string describe(const Collective& collective) { return describe(collective, collective.root); }

std::string describe(const Collective& collective, int name_of_root) {
  const BufferView& buffer = collective.buffer;
  const std::string size = fmt::format("{} {}", buffer.count, describe(buffer.dtype));
  switch (collective.kind) {
    case Collective::Kind::all_reduce:
      return fmt::format("all_reduce of {} ({})", size, describe(collective.op));
    case Collective::Kind::reduce:
      return fmt::format("reduce of {} ({}) to rank {}", size, describe(collective.op), name_of_root);
    case Collective::Kind::broadcast:
      return fmt::format("broadcast of {} from rank {}", size, name_of_root);
    case Collective::Kind::reduce_scatter:
      return fmt::format("reduce_scatter of {} ({})", size, describe(collective.op));
    case Collective::Kind::all_gather:
      return fmt::format("all_gather of {}", size);
    case Collective::Kind::barrier:
      return "barrier";
  }
  return "?";
}

}  // namespace fleetrun::comm
