// Collectives among the ranks of one world: one interface, and one backend per kind of connection between ranks. Every
// rank calls the same collectives in the same order with the same sizes. A call blocks until this rank's part is done.
// If it cannot finish, it throws Error(temporary) that names this rank, the collective with its number, and the rank it
// waited for. After that the communicator is unusable.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/number/buffer_view.h"
#include "base/run/flight_record.h"

namespace fleetrun::comm {

enum class ReduceOp { sum, max, min };

// Memory from which a communicator can send without a copy. 64-byte aligned, zeroed, freed with its owner.
class Memory {
 public:
  virtual ~Memory() = default;
  virtual void* data() = 0;
};

class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;

  // buffer = op over all ranks' buffers, bit for bit the same on every rank.
  virtual void all_reduce(BufferView buffer, ReduceOp op) = 0;
  // buffer of `root` = op over all ranks' buffers. The other ranks' buffers become undefined.
  virtual void reduce(BufferView buffer, ReduceOp op, int root) = 0;
  // Copies the buffer of `root` into the buffers of all ranks.
  virtual void broadcast(BufferView buffer, int root) = 0;
  // `all` has size() slices of mine.count elements. mine = op over slice rank() of all ranks' `all`, which become
  // undefined. `mine` may be that slice of `all`.
  virtual void reduce_scatter(BufferView all, BufferView mine, ReduceOp op) = 0;
  // `all` has size() slices of mine.count elements. Slice r = rank r's `mine`. `mine` may be slice rank() of `all`.
  virtual void all_gather(BufferView mine, BufferView all) = 0;
  // No rank returns before every rank has called.
  virtual void barrier() = 0;

  // Gradients live in memory from their communicator, so that the memory can be shared or registered.
  virtual std::unique_ptr<Memory> allocate(std::size_t bytes) = 0;

  // Calls `tell` on the thread of a collective before that thread sleeps to wait for another rank.
  virtual void on_sleep(std::function<void()>) {}  // NOLINT(performance-unnecessary-value-param)

  virtual std::uint64_t collectives() const = 0;  // begun so far

  // Bytes that the collectives so far made this rank send, if they go round a ring, on which a rank sends the fewest: a figure of what was
  // asked for, whatever the backend does.
  virtual std::uint64_t sent_bytes() const { return 0; }

  // From now on notes each collective in `records` under that name. A composed communicator notes those of its parts,
  // too. Call it between two collectives. `records` outlive the last collective.
  virtual void record_in(FlightRecords& records, const std::string& name) = 0;
};

}  // namespace fleetrun::comm
