// The common base of the backends. It makes each call into a Collective, which checks the arguments, counts it, notes
// it in the flight record, and passes it to run().
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "comm/collective/aligned_memory.h"
#include "comm/collective/collective.h"
#include "comm/collective/communicator.h"

namespace fleetrun::comm {

class CollectiveCommunicator : public Communicator {
 public:
  CollectiveCommunicator(int rank, int size) : rank_(rank), size_(size) {}

  int rank() const final { return rank_; }
  int size() const final { return size_; }

  void all_reduce(BufferView buffer, ReduceOp op) final { take(Collective::all_reduce(buffer, op)); }
  void reduce(BufferView buffer, ReduceOp op, int root) final {
    take(Collective::reduce(buffer, op, root, size_));
  }
  void broadcast(BufferView buffer, int root) final { take(Collective::broadcast(buffer, root, size_)); }
  void reduce_scatter(BufferView all, BufferView mine, ReduceOp op) final {
    take(Collective::reduce_scatter(all, mine, op, size_));
  }
  void all_gather(BufferView mine, BufferView all) final { take(Collective::all_gather(mine, all, size_)); }
  void barrier() final { take(Collective::barrier()); }

  std::unique_ptr<Memory> allocate(std::size_t bytes) override { return make_aligned_memory(bytes); }
  std::uint64_t collectives() const final { return collectives_; }
  std::uint64_t sent_bytes() const final { return sent_bytes_; }
  void on_sleep(std::function<void()> tell) override { before_sleep_ = std::move(tell); }
  void record_in(FlightRecords& records, const std::string& name) override { record_ = records.add(name); }

 protected:
  void tell_of_sleep() const {
    if (before_sleep_) before_sleep_();
  }

  // Counts a collective, notes it in the flight record, and passes it to run().
  void begin(const Collective& collective) {
    const std::uint64_t number = ++collectives_;
    sent_bytes_ += bytes_on_ring(collective, size_);
    if (record_ != nullptr) record_->begin(number, note_of(collective, name_of(collective.root)));
    run(collective, number);
    if (record_ != nullptr) record_->end(number);  // a failed collective stays open
  }

 private:
  // True: a device records the collective (DeviceCommunicator::begin_recording). It begins each time the device repeats it.
  virtual bool is_recorded(const Collective&) { return false; }

  // `number` counts from 1.
  virtual void run(const Collective& collective, std::uint64_t number) = 0;

  // What a rank is called in reports, where the communicator is one of some ranks only.
  virtual int name_of(int of_rank) const { return of_rank; }

  void take(const Collective& collective) {
    if (!is_recorded(collective)) begin(collective);
  }

  const int rank_;
  const int size_;
  std::function<void()> before_sleep_;
  FlightRecord* record_ = nullptr;             // null: nobody wants one
  std::atomic<std::uint64_t> collectives_{0};  // atomic: another thread may read it during a collective
  std::atomic<std::uint64_t> sent_bytes_{0};
};

}  // namespace fleetrun::comm
