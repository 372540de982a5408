// One collective as plain data: what a rank asks of its communicator. We pass it to other threads, compare it between
// ranks, and describe it in errors.
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
  BufferView buffer;  // the whole buffer; for reduce_scatter and all_gather: the slices of all ranks
  BufferView mine;    // only for reduce_scatter and all_gather: this rank's slice
  ReduceOp op = ReduceOp::sum;
  int root = 0;

  // Each checks its arguments for a world of `size`. Wrong arguments are a bug of the caller: throws Error(internal).
  static Collective all_reduce(BufferView buffer, ReduceOp op);
  static Collective reduce(BufferView buffer, ReduceOp op, int root, int size);
  static Collective broadcast(BufferView buffer, int root, int size);
  static Collective reduce_scatter(BufferView all, BufferView mine, ReduceOp op, int size);
  static Collective all_gather(BufferView mine, BufferView all, int size);
  static Collective barrier() { return {}; }

  // Whether two ranks ask for the same: equal kind, sizes, dtype, operation and root. Buffers may differ in address.
  bool matches(const Collective& other) const;
};

// That each rank of `size` sends on the average, if the collective goes round a ring.
std::uint64_t bytes_on_ring(const Collective& collective, int size);

std::string_view describe(ReduceOp op);            // "sum"
std::string_view describe(Collective::Kind kind);  // "all_reduce"
CollectiveNote note_of(const Collective& collective, int name_of_root);
std::string describe(const Collective& collective);  // "all_reduce of 1000 f32 (sum)"
std::string describe(const Collective& collective, int name_of_root);

}  // namespace fleetrun::comm
