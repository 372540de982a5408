#include "comm/collective/collective.h"

#include <fmt/format.h>

#include "base/error/error.h"
#include "comm/collective/reduce.h"

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

std::string_view describe(Collective::Kind kind) {
  switch (kind) {
    case Collective::Kind::all_reduce:
      return "all_reduce";
    case Collective::Kind::reduce:
      return "reduce";
    case Collective::Kind::broadcast:
      return "broadcast";
    case Collective::Kind::reduce_scatter:
      return "reduce_scatter";
    case Collective::Kind::all_gather:
      return "all_gather";
    case Collective::Kind::barrier:
      return "barrier";
  }
  return "?";
}

std::uint64_t bytes_on_ring(const Collective& collective, int size) {
  using Kind = Collective::Kind;
  const std::uint64_t bytes = collective.kind == Kind::barrier ? 0 : collective.buffer.bytes();
  const std::uint64_t rounds = collective.kind == Kind::all_reduce ? 2 : 1;
  return rounds * bytes * static_cast<std::uint64_t>(size - 1) / static_cast<std::uint64_t>(size);
}

CollectiveNote note_of(const Collective& collective, int name_of_root) {
  using Kind = Collective::Kind;
  const Kind kind = collective.kind;
  const bool reduces = kind == Kind::all_reduce || kind == Kind::reduce || kind == Kind::reduce_scatter;
  const bool has_root = kind == Kind::reduce || kind == Kind::broadcast;
  return {.name = describe(kind),
          .reduction = reduces ? describe(collective.op) : "",
          .count = collective.buffer.count,
          .dtype = collective.buffer.dtype,
          .root = has_root ? name_of_root : CollectiveNote::kNoRoot};
}

std::string describe(const Collective& collective) { return describe(collective, collective.root); }

std::string describe(const Collective& collective, int name_of_root) {
  return fleetrun::describe(note_of(collective, name_of_root));
}

}  // namespace fleetrun::comm
