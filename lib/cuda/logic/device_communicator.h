// Collectives by a library that works on a stream of the device (NCCL): ids through the store, no call that blocks,
// errors that come later asked for while waiting, and a deadline on every wait.
#pragma once
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "comm/collective/collective_communicator.h"
#include "comm/rendezvous/deadline.h"
#include "comm/rendezvous/exchange.h"

namespace fleetrun::cuda {

// The library, one communicator of it. No call waits for another rank.
class CollectiveLibrary {
 public:
  enum class State { done, busy, failed };

  virtual ~CollectiveLibrary() = default;
  virtual std::string make_id() = 0;  // that all ranks have to join with
  virtual void begin_join(const std::string& id, int rank, int size) = 0;
  // Whether it works on memory of the host, which has to copy before and after it.
  virtual bool is_for_host(const comm::Collective& collective) = 0;
  virtual void begin(const comm::Collective& collective) = 0;  // gives it to the stream
  virtual State calls() = 0;          // of all calls so far; `failed` also when it was found out later
  virtual State work() = 0;           // of what the stream was given
  virtual void finish() = 0;          // what is left for the host when the work is done
  virtual void abort() = 0;           // the communicator is of no more use; the stream is free again
  virtual std::string problem() = 0;  // why something failed, in the library's words
  // Its stream goes on when the compute stream has done what it was given so far.
  virtual void follow_compute() = 0;
  virtual std::unique_ptr<comm::Memory> allocate(std::size_t bytes) = 0;
};

struct DeviceCommunicatorOptions {
  comm::Party party;       // its store must outlive the communicator
  std::string name = "0";  // apart from other communicators of the same ranks
  bool wait =
      true;  // a collective returns when it is done; else, on the device's memory, when it is given to
             // its stream; a barrier is waited for in any case
  std::chrono::milliseconds join_deadline = std::chrono::seconds(300);
  std::chrono::milliseconds collective_deadline = std::chrono::seconds(300);
};

class DeviceCommunicator : public comm::CollectiveCommunicator {
 public:
  // Returns when this rank has joined all others. Throws Error(temporary) that says what the library says.
  DeviceCommunicator(std::unique_ptr<CollectiveLibrary> library, const DeviceCommunicatorOptions& options);
  ~DeviceCommunicator() override;

  std::unique_ptr<comm::Memory> allocate(std::size_t bytes) override { return library_->allocate(bytes); }

  // Between the two, collectives on the device's memory go into a recording of the device: no rank does them, and nobody
  // waits. `end_recording` returns them.
  void begin_recording();
  std::vector<comm::Collective> end_recording();
  // The compute stream was given such a recording: its collectives begin once more.
  void repeat(const std::vector<comm::Collective>& recorded);

  // Asked while somebody waits for the device: throws as a collective that was not waited for would have.
  void poll();

 private:
  bool is_recorded(const comm::Collective& collective) override;
  void run(const comm::Collective& collective, std::uint64_t number) override;
  void check_usable(const comm::Collective& collective) const;
  void note(const comm::Collective& collective, std::uint64_t number);
  std::string doing() const;
  void wait_for(CollectiveLibrary::State (CollectiveLibrary::*state)());
  [[noreturn]] void fail(const std::string& problem);

  std::unique_ptr<CollectiveLibrary> library_;
  const DeviceCommunicatorOptions options_;
  comm::Collective collective_;  // the last one begun
  std::uint64_t number_ = 0;     // of that; 0: joining
  std::size_t repeated_ = 1;     // collectives of the repeated recording that it ends; 1: or it stands alone
  comm::Deadline deadline_;      // of that
  bool pending_ = false;         // begun and not known to be done
  bool aborted_ = false;
  bool repeating_ = false;
  bool recording_ = false;
  std::vector<comm::Collective> recorded_;
};

}  // namespace fleetrun::cuda
