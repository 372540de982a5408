// When a device with streams was at work on each op of a run: a stamp in the op's stream before it and one after it. A device that waits for
// the host passes the first stamp before the host has given the op, so the time of the host counts, too. Allocates nothing after construction.
#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "runtime/graph/program.h"
#include "runtime/kernels/streams.h"

namespace fleetrun::runtime {

class DeviceTimes {
 public:
  static constexpr int kMostStreams = 16;

  DeviceTimes(Streams& streams, std::size_t ops);

  void begin();  // of a run; waits until the device has nothing to do
  bool is_running() const { return is_running_; }
  // `give` gives the op to the stream. From several threads, for different ops; ops of one stream are given one after the other.
  void stamp(OpId op, int stream, const std::function<void()>& give);

  void cancel() { is_running_ = false; }  // the run has failed
  // Of the run: waits for the device, then tells for each op that was given to it when the device was at work on it, on the clock of
  // monotonic_ns().
  using Note = std::function<void(OpId op, std::int64_t start_ns, std::int64_t end_ns)>;
  void end(const Note& note);

 private:
  struct Pair {
    std::unique_ptr<Stamp> before, after;
    bool was_given = false;  // in this run
  };

  Streams& streams_;
  std::vector<Pair> ops_;                        // by OpId
  std::array<std::mutex, kMostStreams> giving_;  // by stream
  std::unique_ptr<Stamp> start_;
  std::int64_t start_ns_ = 0;  // when the device reached that, as the host knows it
  bool is_running_ = false;
};

}  // namespace fleetrun::runtime
