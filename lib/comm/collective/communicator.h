// Collectives among the ranks of one world: one interface, a backend per way of reaching each other.
// Every rank calls the same collectives in the same order with the same sizes. Calls block until this
// rank's part is done. A call that cannot be finished throws Error(temporary) that names this rank, the
// collective with its number and the rank it waited for; after that the communicator is of no more use.
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

  // buffer = op over all ranks' buffers, the same on every rank bit for bit.
  virtual void all_reduce(BufferView buffer, ReduceOp op) = 0;
  // buffer of `root` = op over all ranks' buffers; those of the others are left undefined.
  virtual void reduce(BufferView buffer, ReduceOp op, int root) = 0;
  // buffer of `root` copied into everybody's.
  virtual void broadcast(BufferView buffer, int root) = 0;
  // all: size() slices of mine.count; mine = op over slice rank() of everybody's `all` (which is left
  // undefined). `mine` may be that slice.
  virtual void reduce_scatter(BufferView all, BufferView mine, ReduceOp op) = 0;
  // all: size() slices of mine.count; slice r = rank r's `mine`. `mine` may be that slice.
  virtual void all_gather(BufferView mine, BufferView all) = 0;
  // No rank returns before every rank has called.
  virtual void barrier() = 0;

  // Gradients live in memory of their communicator, so that it can be shared or registered.
  virtual std::unique_ptr<Memory> allocate(std::size_t bytes) = 0;

  // `tell` is called on the thread of a collective before it sleeps until another rank comes, if it does.
  virtual void on_sleep(std::function<void()>) {}  // NOLINT(performance-unnecessary-value-param)

  virtual std::uint64_t collectives() const = 0;  // begun so far

  // Notes each collective from now on among `records`, which outlive the last one, under that name; where one is
  // composed of others, theirs. Called between two collectives.
  virtual void record_in(FlightRecords& records, const std::string& name) = 0;
};

}  // namespace fleetrun::comm
