// A StreamPlan being carried out on a device: its events, recorded and waited for around each op. Allocates nothing
// after construction; `before` and `after` may be called from several threads, for different ops.
#pragma once
#include <memory>
#include <vector>

#include "runtime/exec/stream_plan.h"
#include "runtime/kernels/streams.h"

namespace fleetrun::runtime {

class StreamOrder {
 public:
  StreamOrder(StreamPlan plan, Streams& streams);

  int stream_of(OpId op) const { return plan_.stream[static_cast<std::size_t>(op)]; }

  void begin();          // of a run
  void before(OpId op);  // is given to its stream
  void after(OpId op);   // was given to its stream
  void end();            // of a run: from here the compute stream has seen everything

 private:
  const StreamPlan plan_;
  std::vector<std::unique_ptr<Event>> done_;  // by OpId: of those that are marked
  std::unique_ptr<Event> begun_;
};

}  // namespace fleetrun::runtime
