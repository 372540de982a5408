// When a device with streams was at work on each op of a run: a stamp in the op's stream before it and one after it. Allocates nothing after
// construction; `before` and `after` may be called from several threads, for different ops.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "runtime/graph/program.h"
#include "runtime/kernels/streams.h"

namespace fleetrun::runtime {

class DeviceTimes {
 public:
  DeviceTimes(Streams& streams, std::size_t ops);

  void begin();  // of a run; waits until the device has nothing to do
  bool is_running() const { return is_running_; }
  void before(OpId op, int stream);
  void after(OpId op, int stream);

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
  std::vector<Pair> ops_;  // by OpId
  std::unique_ptr<Stamp> start_;
  std::int64_t start_ns_ = 0;  // when the device reached that, as the host knows it
  bool is_running_ = false;
};

}  // namespace fleetrun::runtime
