// One collective as plain data: what a rank asks of its communicator. Carried to other threads, compared
// between ranks, named in errors.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "base/number/buffer_view.h"
#include "base/run/flight_record.h"
#include "comm/collective/communicator.h"

namespace fleetrun::comm {

struct Collective {
  enum class Kind { all_reduce, reduce, broadcast, reduce_scatter, all_gather, barrier };
  Kind kind = Kind::barrier;
  BufferView buffer;  // all of it; of reduce_scatter and all_gather: the slices of all
  BufferView mine;    // reduce_scatter and all_gather: this rank's slice
  ReduceOp op = ReduceOp::sum;
  int root = 0;

  // Each checks its arguments for a world of `size` and throws Error(internal): a bug of the caller.
  static Collective all_reduce(BufferView buffer, ReduceOp op);
  static Collective reduce(BufferView buffer, ReduceOp op, int root, int size);
  static Collective broadcast(BufferView buffer, int root, int size);
  static Collective reduce_scatter(BufferView all, BufferView mine, ReduceOp op, int size);
  static Collective all_gather(BufferView mine, BufferView all, int size);
  static Collective barrier() { return {}; }

  // Whether two ranks mean the same: same kind, sizes, dtype, operation and root, wherever their buffers are.
  bool matches(const Collective& other) const;
};

std::string_view describe(ReduceOp op);            // "sum"
std::string_view describe(Collective::Kind kind);  // "all_reduce"
CollectiveNote note_of(const Collective& collective, int name_of_root);
std::string describe(const Collective& collective);  // "all_reduce of 1000 f32 (sum)"
std::string describe(const Collective& collective, int name_of_root);

}  // namespace fleetrun::comm
