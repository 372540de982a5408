// How the host works with a device that works beside it: queues of work, marks in them, and copies between
// memory that only one of the two can reach. Work given to one stream is done in its order, after the call has
// returned; work of different streams is ordered by events alone.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "comm/collective/communicator.h"

namespace fleetrun::runtime {

constexpr int kComputeStream = 0;
constexpr int kCopyStream = 1;               // feeds on their way to the device
constexpr int kFirstCommunicatorStream = 2;  // communicator i works on stream kFirstCommunicatorStream + i

// A mark in a stream. One that was never recorded holds nobody back.
class Event {
 public:
  virtual ~Event() = default;
  virtual void record(int stream) = 0;     // after all work given to the stream so far
  virtual void hold_back(int stream) = 0;  // work given to the stream from now on starts after the mark
  virtual void wait() = 0;                 // until the device has reached the mark
};

// A mark in a stream that keeps when the device reached it.
class Stamp {
 public:
  virtual ~Stamp() = default;
  virtual void record(int stream) = 0;  // after all work given to the stream so far
  // Nanoseconds from `earlier`, of the same device, to this one; the device has reached both.
  virtual std::int64_t ns_after(const Stamp& earlier) const = 0;
};

// Work that was recorded while it was given to the compute stream.
class Recording {
 public:
  virtual ~Recording() = default;
  virtual void replay() = 0;  // gives all of it to the compute stream again
};

// A copy to memory of Streams::allocate_staging.
struct Download {
  const void* data = nullptr;
  void* staging = nullptr;
  std::size_t bytes = 0;
};

class Streams {
 public:
  virtual ~Streams() = default;
  virtual std::unique_ptr<Event> make_event() = 0;
  virtual std::unique_ptr<Stamp> make_stamp() = 0;

  // Memory of the host from which the device can copy by itself.
  virtual std::unique_ptr<comm::Memory> allocate_staging(std::size_t bytes) = 0;

  // Gives a copy to the stream: `staging` is kept as it is until that is done.
  virtual void upload(const void* staging, void* data, std::size_t bytes, int stream) = 0;

  // Copies after what the compute stream was given, and returns when that is done. Throws what went wrong in it:
  // Error(data) for a label that is not a class.
  virtual void download(const void* data, void* host, std::size_t bytes) = 0;

  // The same for several copies, for which the host waits once.
  virtual void download_all(std::span<const Download> downloads) = 0;

  // Returns when the work of all streams is done; throws what went wrong in it.
  virtual void synchronise() = 0;

  // Between the two, what the compute stream is given is recorded and not done. Nobody waits for the device meanwhile.
  // `end_recording` throws what the device could not record, and is called after a failure, too.
  virtual bool can_record() const { return false; }
  virtual void begin_recording() {}
  virtual std::unique_ptr<Recording> end_recording() { return nullptr; }
};

}  // namespace fleetrun::runtime
